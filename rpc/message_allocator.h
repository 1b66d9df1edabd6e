// Own memory for the messages of a unary method of the callback API: out of a
// pool, or an arena.
//
//   class Pool final : public rpc::MessageAllocator<GetRequest, GetResponse> {
//     rpc::MessageHolder<GetRequest, GetResponse>* AllocateMessages() override;
//   };
//   service.SetMessageAllocatorFor_Get(&pool);
//
// There is no need for one to avoid allocations: without it, a call uses the
// messages of one before it again.
//
// Thread rule: AllocateMessages from any thread, several at a time; a holder is
// its call's.
#ifndef VERBENA_RPC_MESSAGE_ALLOCATOR_H_
#define VERBENA_RPC_MESSAGE_ALLOCATOR_H_

namespace rpc {

// What a handler sees of its call's holder
// (CallbackServerContext::GetRpcAllocatorState).
class RpcAllocatorState {
 public:
  virtual ~RpcAllocatorState() = default;

  // The handler needs the request no more. At most once, before Finish.
  virtual void FreeRequest() {}
};

// The messages of one call.
template <class RequestT, class ResponseT>
class MessageHolder : public RpcAllocatorState {
 public:
  // The call is over, and OnDone has returned: the last that happens to it.
  virtual void Release() = 0;

  RequestT* request() { return request_; }
  ResponseT* response() { return response_; }

 protected:
  void set_request(RequestT* request) { request_ = request; }
  void set_response(ResponseT* response) { response_ = response; }

 private:
  // Owned by subclasses.
  RequestT* request_ = nullptr;
  ResponseT* response_ = nullptr;
};

template <class RequestT, class ResponseT>
class MessageAllocator {
 public:
  virtual ~MessageAllocator() = default;

  // For a call that came; with both messages set, and the response empty. Null:
  // the call ends with RESOURCE_EXHAUSTED.
  virtual MessageHolder<RequestT, ResponseT>* AllocateMessages() = 0;
};

}  // namespace rpc

#endif  // VERBENA_RPC_MESSAGE_ALLOCATOR_H_
