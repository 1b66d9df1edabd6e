#include "rpc/internal/intercepted_operation.h"

namespace rpc::internal {

void InterceptedOperation::Begin() {
  ShowBefore();
  RunForward();
}

void InterceptedOperation::Go() {
  Clear();
  if (!is_hijacked()) return Perform();
  ShowHijacker();
  RunHijacker();
}

void InterceptedOperation::Complete(bool ok) {
  Clear();
  ok_ = ok;
  ShowAfter(&ok_);
  RunReverse();
}

void InterceptedOperation::OnStageDone(Stage stage) {
  switch (stage) {
    case Stage::kForward:
      return Await();
    case Stage::kHijacker:
      return Complete(HijackerDone());
    case Stage::kReverse:
      return End(ok_);
  }
}

}  // namespace rpc::internal
