// Base of generated services: the list of their methods, and how each is
// handled.
//
// Thread rule: set up by one thread, then immutable; RequestAsync from any
// thread. A service must outlive the calls of its methods, and so the server's
// Shutdown unless none come any more; one with asynchronous methods serves one
// server.
#ifndef VERBENA_RPC_SERVICE_H_
#define VERBENA_RPC_SERVICE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "rpc/completion_queue.h"
#include "rpc/internal/async_server_call.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/rpc_service_method.h"
#include "rpc/server_context.h"

namespace rpc {

namespace testing {
class ServiceTestPeer;
}  // namespace testing

class Service {
  using ApiType = internal::RpcServiceMethod::ApiType;

 public:
  Service() = default;
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Whether any of its methods is handled so: by a blocking handler, by a
  // queue, by a reactor, by a generic service.
  bool has_synchronous_methods() const { return HasMethods(ApiType::kSync); }
  bool has_async_methods() const { return HasMethods(ApiType::kAsync); }
  bool has_callback_methods() const { return HasMethods(ApiType::kCallback); }
  bool has_generic_methods() const { return HasMethods(ApiType::kGeneric); }

 protected:
  // For generated code. Takes over `method`; the n-th one has index n.
  void AddMethod(internal::RpcServiceMethod* method) {
    methods_.emplace_back(method);
  }
  // The method's calls go to `handler` from now on; taken over.
  void MarkMethodCallback(int index, internal::MethodHandler* handler) {
    Method(index).SetHandler(ApiType::kCallback, handler);
  }
  void MarkMethodRawCallback(int index, internal::MethodHandler* handler) {
    Method(index).SetHandler(ApiType::kCallback, handler);
  }
  void MarkMethodStreamed(int index, internal::MethodHandler* handler) {
    Method(index).SetHandler(ApiType::kSync, handler);
  }
  // They are asked for by RequestAsync.
  void MarkMethodAsync(int index);
  void MarkMethodRaw(int index) { MarkMethodAsync(index); }
  // They are left to a generic service.
  void MarkMethodGeneric(int index) {
    Method(index).SetHandler(ApiType::kGeneric, nullptr);
  }
  internal::MethodHandler* GetHandler(int index) {
    return Method(index).handler();
  }

  // Asks for a call of a method that is marked async. Its event comes out of
  // `notification_queue`, those of its operations out of `call_queue`.
  template <class Message>
  void RequestAsyncUnary(int index, ServerContext* context, Message* request,
                         internal::ServerAsyncStreamingInterface* stream,
                         CompletionQueue* call_queue,
                         ServerCompletionQueue* notification_queue, void* tag) {
    RequestAsync(
        index, {context, stream, request, call_queue, notification_queue, tag});
  }
  template <class Message>
  void RequestAsyncServerStreaming(
      int index, ServerContext* context, Message* request,
      internal::ServerAsyncStreamingInterface* stream,
      CompletionQueue* call_queue, ServerCompletionQueue* notification_queue,
      void* tag) {
    RequestAsync(
        index, {context, stream, request, call_queue, notification_queue, tag});
  }
  void RequestAsyncClientStreaming(
      int index, ServerContext* context,
      internal::ServerAsyncStreamingInterface* stream,
      CompletionQueue* call_queue, ServerCompletionQueue* notification_queue,
      void* tag) {
    RequestAsync(index, {context, stream, internal::MessageRef(), call_queue,
                         notification_queue, tag});
  }
  void RequestAsyncBidiStreaming(
      int index, ServerContext* context,
      internal::ServerAsyncStreamingInterface* stream,
      CompletionQueue* call_queue, ServerCompletionQueue* notification_queue,
      void* tag) {
    RequestAsyncClientStreaming(index, context, stream, call_queue,
                                notification_queue, tag);
  }

 private:
  friend class Server;
  friend class ServerBuilder;
  friend class testing::ServiceTestPeer;
  internal::RpcServiceMethod& Method(int index) {
    return *methods_[static_cast<size_t>(index)];
  }
  void RequestAsync(int index, const internal::AsyncRequest::Target& target);
  bool HasMethods(ApiType api_type) const;

  bool was_registered_ = false;  // with a server
  std::vector<std::unique_ptr<internal::RpcServiceMethod>> methods_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVICE_H_
