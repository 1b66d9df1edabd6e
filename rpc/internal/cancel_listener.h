// Who hears that the user of a call cancels it.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_INTERNAL_CANCEL_LISTENER_H_
#define VERBENA_RPC_INTERNAL_CANCEL_LISTENER_H_

namespace rpc::internal {

class CancelListener {
 public:
  virtual ~CancelListener() = default;
  // Before the call hears of it.
  virtual void OnTryCancel() = 0;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CANCEL_LISTENER_H_
