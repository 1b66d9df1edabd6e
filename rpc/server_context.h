// What a server's handler hears of a call besides its request, and says besides
// its response: deadline, metadata, attachments, cancelling.
//
//   rpc::Status Get(rpc::ServerContext* context, const GetRequest* request,
//                   GetResponse* response) override {
//     context->set_attachment(values_.Find(request->key()));
//     context->AddTrailingMetadata("shard", "7");
//     return rpc::Status::OK;
//   }
//
// A context belongs to its call: it is valid until the handler returned
// (ServerContext), or until OnDone (CallbackServerContext).
//
// A test may call a handler with a context of its own: it was never cancelled,
// has no peer, and its buffers are heap memory.
//
// Thread rule: one thread at a time; IsCancelled and TryCancel from any thread.
#ifndef VERBENA_RPC_SERVER_CONTEXT_H_
#define VERBENA_RPC_SERVER_CONTEXT_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/auth_context.h"
#include "rpc/buffer.h"
#include "rpc/compression.h"
#include "rpc/internal/deadline.h"
#include "rpc/internal/received_metadata.h"
#include "rpc/message_allocator.h"
#include "rpc/metadata.h"
#include "rpc/server_callback.h"

struct census_context;

namespace rpc {
class ClientContext;
class ContextAllocator;
namespace testing {
class ServerContextTestSpouse;
}  // namespace testing
namespace internal {
class AsyncServerCall;
class CallbackServerCall;
class CallbackServerStream;
class ServerCall;
class ChildCall;
struct ParentCall;

// What a context asks of its call.
class ServerCallControl {
 public:
  virtual bool IsCancelled() const = 0;
  virtual void Cancel() = 0;
  virtual absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) = 0;
  virtual std::string peer() const = 0;
  // What the client's channel says with each of its calls; null: nothing.
  virtual const ReceivedMetadata* origin() const = 0;
  // `child` is cancelled when the call is cut off, or over. Under the name that
  // is returned.
  virtual ParentCall AddChild(const std::shared_ptr<ChildCall>& child) = 0;
  // The context is destroyed. Only of one that is a user's own.
  virtual void OnContextGone() {}

 protected:
  ~ServerCallControl() = default;
};
}  // namespace internal

class ServerContextBase {
 public:
  ServerContextBase(const ServerContextBase&) = delete;
  ServerContextBase& operator=(const ServerContextBase&) = delete;

  // When the client gives up, on this host's clock.
  std::chrono::system_clock::time_point deadline() const {
    return internal::ToSystemClock(deadline_);
  }
  absl::Time raw_deadline() const { return deadline_; }

  // True once nobody waits for the response any more: the client cancelled, the
  // deadline passed, or the connection broke. A handler that takes long should
  // look now and then.
  bool IsCancelled() const;

  // Ends the call with CANCELLED on both sides; what the handler returns no
  // longer matters.
  void TryCancel() const;

  const ReceivedMetadataMap& client_metadata() const {
    return received_ == nullptr ? MetadataOfOrigin() : received_->initial();
  }

  // For the client; see metadata.h for what is legal. An illegal pair makes the
  // call end with INTERNAL. Initial metadata: before it is sent, with the
  // response at the latest.
  void AddInitialMetadata(const std::string& key, const std::string& value);
  void AddTrailingMetadata(const std::string& key, const std::string& value);

  // What came beside the request; empty where nothing did. Valid until a
  // blocking handler or coroutine returns, OnDone of a reactor, or the end of
  // an asynchronous call's context; the chain may be copied or moved from.
  // Memory of the transport's receive pool: a handler that keeps a small one
  // for long should copy it. Whether the peer can still write to it:
  // ClientContext::attachment.
  const BufferChain& attachment() const { return received_attachment_; }
  BufferChain& attachment() { return received_attachment_; }

  // Bytes to go beside the response; sent where the status is OK. As of
  // ClientContext::set_attachment, but that the memory must not change until
  // the client has it: share what is never written again.
  void set_attachment(BufferChain attachment) {
    sent_attachment_ = std::move(attachment);
  }

  // Remembered, and without effect; see compression.h.
  void set_compression_algorithm(CompressionAlgorithm algorithm);
  CompressionAlgorithm compression_algorithm() const;
  void set_compression_level(CompressionLevel level);
  CompressionLevel compression_level() const;
  bool compression_level_set() const;

  // Memory that is sent without copying. RESOURCE_EXHAUSTED: the memory budget
  // is used up; its text says what to do.
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes);

  // "ipv4:127.0.0.1:40000", "ipv6:[::1]:40000".
  std::string peer() const;

  // Who the client is: nobody that could be told. See auth_context.h.
  std::shared_ptr<const AuthContext> auth_context() const {
    return internal::UnauthenticatedPeer();
  }

  // What the client calls the server: by set_authority, or else the address
  // that its channel was made with ("localhost:50051"). Valid as long as the
  // context.
  string_ref ExperimentalGetAuthority() const;

  // One trailing "lb-cost-bin" each, as gRPC sends them.
  void SetLoadReportingCosts(const std::vector<std::string>& cost_data);

  // Null: there is no census here.
  const struct census_context* census_context() const { return nullptr; }

 protected:
  ServerContextBase() = default;
  ~ServerContextBase() {
    if (is_bound_) call_->OnContextGone();
  }

 private:
  friend class ClientContext;
  friend class internal::ServerCall;
  friend class testing::ServerContextTestSpouse;

  // What came with a call.
  void TakeFrom(ServerContextBase& other) {
    deadline_ = other.deadline_;
    received_attachment_ = std::move(other.received_attachment_);
    received_ = std::move(other.received_);
  }

  bool has_metadata() const { return received_ != nullptr || sent_ != nullptr; }
  // Between calls: contexts are used again, with their call's other state.
  void Clear() {
    ClearAttachments();
    received_.reset();
    sent_.reset();
  }
  bool has_attachments() const {
    return !received_attachment_.empty() || !sent_attachment_.empty();
  }
  void ClearAttachments() {
    received_attachment_.clear();
    sent_attachment_.clear();
  }

  // What the handler added.
  struct SentMetadata {
    internal::MetadataMap initial;
    internal::MetadataMap trailing;
    CompressionAlgorithm compression_algorithm = COMPRESS_NONE;
    std::optional<CompressionLevel> compression_level;
  };
  SentMetadata& sent();
  // What its client's channel says; null: nothing.
  const internal::ReceivedMetadata* origin() const {
    return call_ == nullptr ? nullptr : call_->origin();
  }
  // Of a call that came without metadata.
  const ReceivedMetadataMap& MetadataOfOrigin() const;

  internal::ServerCallControl* call_ = nullptr;
  bool is_bound_ = false;   // a user's own: keeps its call
  bool cancelled_ = false;  // the call that it was of
  absl::Time deadline_ = absl::InfiniteFuture();
  BufferChain received_attachment_;
  BufferChain sent_attachment_;
  std::unique_ptr<internal::ReceivedMetadata> received_;
  std::unique_ptr<SentMetadata> sent_;
};

// Handlers of the synchronous API get one. For the asynchronous one the user
// makes it; it must live until the last event of its call was taken. If it goes
// before Finish, the call is cancelled. What it says of its client, and what
// came with the call, is valid as long as it. So it keeps its call, and what
// all calls of its server share: do not keep it for long.
class ServerContext : public ServerContextBase {
 public:
  ServerContext() = default;

  // Asynchronous API, before RequestX: `tag` comes out of the call's queue when
  // the call is over, cancelled or not. It does not come where there never is a
  // call.
  void AsyncNotifyWhenDone(void* tag) {
    has_done_tag_ = true;
    done_tag_ = tag;
  }

 private:
  friend class internal::AsyncServerCall;

  // False where there is none.
  bool TakeDoneTag(void** tag) {
    *tag = done_tag_;
    return std::exchange(has_done_tag_, false);
  }

  bool has_done_tag_ = false;
  void* done_tag_ = nullptr;
};

class CallbackServerContext : public ServerContextBase {
 public:
  CallbackServerContext() = default;

  // A reactor for handlers that need no reactions of their own. It belongs to
  // the context.
  //
  //   auto* reactor = context->DefaultReactor();
  //   reactor->Finish(rpc::Status::OK);
  //   return reactor;
  ServerUnaryReactor* DefaultReactor() { return &default_reactor_; }

  // The call's messages, where its method has a MessageAllocator; else null.
  RpcAllocatorState* GetRpcAllocatorState() { return allocator_state_; }

  // Whose the context is; null where it is the server's own.
  ContextAllocator* context_allocator() const { return context_allocator_; }
  void set_context_allocator(ContextAllocator* context_allocator) {
    context_allocator_ = context_allocator;
  }

 private:
  friend class internal::CallbackServerCall;

  class DefaultReactorType final : public ServerUnaryReactor {
   public:
    void OnDone() override {}
  };

  DefaultReactorType default_reactor_;
  RpcAllocatorState* allocator_state_ = nullptr;
  ContextAllocator* context_allocator_ = nullptr;
};

// Those of generic services; see generic_service.h.
class GenericServerContext final : public ServerContext {
 public:
  // "/package.Service/Method", as the client named it. Set with the call.
  const std::string& method() const { return method_; }
  // ExperimentalGetAuthority.
  std::string host() const { return std::string(ExperimentalGetAuthority()); }

 private:
  friend class AsyncGenericService;
  std::string method_;
};

class GenericCallbackServerContext final : public CallbackServerContext {
 public:
  const std::string& method() const { return method_; }
  std::string host() const { return std::string(ExperimentalGetAuthority()); }

 private:
  friend class internal::CallbackServerStream;
  std::string method_;
};

// Where the contexts of callback methods come from, instead of being used again
// from call to call; see ServerBuilder::SetContextAllocator. For programs that
// keep something of their own in a class that derives from the context.
//
// A New... is called for each call that comes, and may say null: then the
// context is the server's own. Release is called when the call is over, and
// OnDone has returned, also with one of the server's own, which stays that.
// Any thread, several at a time.
class ContextAllocator {
 public:
  virtual ~ContextAllocator() = default;
  virtual CallbackServerContext* NewCallbackServerContext() { return nullptr; }
  virtual GenericCallbackServerContext* NewGenericCallbackServerContext() {
    return nullptr;
  }
  virtual void Release(CallbackServerContext* /*context*/) {}
  virtual void Release(GenericCallbackServerContext* /*context*/) {}
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_CONTEXT_H_
