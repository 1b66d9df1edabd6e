// A call of the callback API whose context is from a ContextAllocator: not used
// again for another call, so that the allocator is asked for each.
//
// Thread rule: as ServerCall.
#ifndef VERBENA_RPC_INTERNAL_SUPPLIED_CONTEXT_H_
#define VERBENA_RPC_INTERNAL_SUPPLIED_CONTEXT_H_

#include <type_traits>

#include "rpc/server_context.h"

namespace rpc::internal {

// `Call` is made of its handler and a context, which is null where it is to
// have its own. The allocator hears of the end of that, too, as in gRPC.
template <class Call, class Context = CallbackServerContext>
class WithSuppliedContext final : public Call {
 public:
  template <class Handler>
  WithSuppliedContext(Handler& handler, ContextAllocator& allocator,
                      Context* context)
      : Call(handler, context), allocator_(allocator), context_(TheContext()) {
    context_->set_context_allocator(&allocator);
  }
  ~WithSuppliedContext() override {
    this->LeaveContext();
    allocator_.Release(context_);
  }

 private:
  void OnComplete() override {
    Call::OnComplete();
    this->KeepNoMore();
  }

  Context* TheContext() {
    if constexpr (std::is_same_v<Context, GenericCallbackServerContext>) {
      return this->generic_context();
    } else {
      return this->context();
    }
  }

  ContextAllocator& allocator_;
  Context* const context_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SUPPLIED_CONTEXT_H_
