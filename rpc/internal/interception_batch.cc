#include "rpc/internal/interception_batch.h"

#include "rpc/logging.h"

namespace rpc::internal {
namespace {

// Nothing goes on where an interceptor proceeds.
class CancelBatch final : public InterceptionBatch {
 public:
  explicit CancelBatch(Interceptors* interceptors)
      : InterceptionBatch(interceptors) {
    Show(Hook::PRE_SEND_CANCEL);
  }
  void Proceed() override {}
  void Hijack() override {}

 private:
  void OnStageDone(Stage) override {}
};

}  // namespace

void ShowCancel(Interceptors& interceptors) {
  CancelBatch batch(&interceptors);
  for (size_t i = 0; i < interceptors.size(); ++i) {
    interceptors.at(i).Intercept(&batch);
  }
}

void InterceptionBatch::Clear() {
  hooks_ = 0;
  fields_ = Fields();
}

void InterceptionBatch::Run(Stage stage) {
  const size_t reach = interceptors_.reach();
  if (hooks_ == 0 || reach == 0) return OnStageDone(stage);
  stage_ = stage;
  index_ = stage == Stage::kForward ? 0 : reach - 1;
  Ask();
}

void InterceptionBatch::Proceed() {
  switch (stage_) {
    case Stage::kForward:
      if (++index_ < interceptors_.reach()) return Ask();
      break;
    case Stage::kReverse:
      if (index_-- > 0) return Ask();
      break;
    case Stage::kHijacker:
      break;
  }
  OnStageDone(stage_);
}

void InterceptionBatch::Hijack() {
  if (stage_ != Stage::kForward || !MayBeHijacked()) {
    Log(LogLevel::kError,
        "an interceptor may hijack a client's call where "
        "PRE_SEND_INITIAL_METADATA is there, and nowhere else; it goes on");
    return Proceed();
  }
  interceptors_.SetHijacker(index_);
  OnStageDone(stage_);
}

bool InterceptionBatch::QueryInterceptionHookPoint(Hook type) {
  return (hooks_ & BitOf(type)) != 0;
}

ByteBuffer* InterceptionBatch::GetSerializedSendMessage() {
  return fields_.send_message == nullptr ? nullptr
                                         : fields_.send_message->Serialize();
}

const void* InterceptionBatch::GetSendMessage() {
  return fields_.send_message == nullptr ? nullptr
                                         : fields_.send_message->object();
}

void InterceptionBatch::ModifySendMessage(const void* message) {
  if (fields_.send_message != nullptr) fields_.send_message->Replace(message);
}

Status InterceptionBatch::GetSendStatus() {
  return fields_.send_status == nullptr ? Status() : *fields_.send_status;
}

void InterceptionBatch::ModifySendStatus(const Status& status) {
  if (fields_.send_status != nullptr) *fields_.send_status = status;
}

std::unique_ptr<ChannelInterface> InterceptionBatch::GetInterceptedChannel() {
  return nullptr;
}

}  // namespace rpc::internal
