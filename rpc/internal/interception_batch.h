// One operation of a call on its way through the call's interceptors: what they
// see of it, and where it goes next.
//
//   Show(Hook::PRE_SEND_MESSAGE);
//   fields().send_message = &message;
//   RunForward();            // ends in OnStageDone(Stage::kForward)
//   ... the message is sent ...
//   Clear();
//   Show(Hook::POST_SEND_MESSAGE);
//   RunReverse();            // ends in OnStageDone(Stage::kReverse)
//
// A stage ends at once, on the same stack, where its interceptors proceed at
// once, or where there is nothing to show.
//
// Thread rule: one thread at a time, which may change where an interceptor
// proceeds later.
#ifndef VERBENA_RPC_INTERNAL_INTERCEPTION_BATCH_H_
#define VERBENA_RPC_INTERNAL_INTERCEPTION_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rpc/byte_buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/interceptor.h"
#include "rpc/internal/intercepted_message.h"
#include "rpc/internal/interceptors.h"
#include "rpc/metadata.h"
#include "rpc/status.h"

namespace rpc::internal {

class InterceptionBatch : public experimental::InterceptorBatchMethods {
 public:
  using Hook = experimental::InterceptionHookPoints;

  enum class Stage {
    kForward,   // the first to the last
    kHijacker,  // the one that hijacked the call
    kReverse,   // the last to the first
  };

  // What belongs to the hook points that are shown; null where it does not.
  struct Fields {
    InterceptedMessage* send_message = nullptr;
    MetadataMap* send_initial_metadata = nullptr;
    Status* send_status = nullptr;
    MetadataMap* send_trailing_metadata = nullptr;
    void* recv_message = nullptr;
    ReceivedMetadataMap* recv_initial_metadata = nullptr;
    Status* recv_status = nullptr;
    ReceivedMetadataMap* recv_trailing_metadata = nullptr;
    bool message_sent = false;
  };

  bool QueryInterceptionHookPoint(Hook type) final;
  void Proceed() override;
  void Hijack() override;
  ByteBuffer* GetSerializedSendMessage() final;
  const void* GetSendMessage() final;
  void ModifySendMessage(const void* message) final;
  void FailHijackedSendMessage() final { send_failed_ = true; }
  bool GetSendMessageStatus() final { return fields_.message_sent; }
  std::multimap<std::string, std::string>* GetSendInitialMetadata() final {
    return fields_.send_initial_metadata;
  }
  Status GetSendStatus() final;
  void ModifySendStatus(const Status& status) final;
  std::multimap<std::string, std::string>* GetSendTrailingMetadata() final {
    return fields_.send_trailing_metadata;
  }
  void* GetRecvMessage() final { return fields_.recv_message; }
  ReceivedMetadataMap* GetRecvInitialMetadata() final {
    return fields_.recv_initial_metadata;
  }
  Status* GetRecvStatus() final { return fields_.recv_status; }
  ReceivedMetadataMap* GetRecvTrailingMetadata() final {
    return fields_.recv_trailing_metadata;
  }
  void FailHijackedRecvMessage() final { receive_failed_ = true; }
  std::unique_ptr<ChannelInterface> GetInterceptedChannel() override;

 protected:
  explicit InterceptionBatch(Interceptors* interceptors)
      : interceptors_(*interceptors) {}

  void Show(Hook hook) { hooks_ |= BitOf(hook); }
  Fields& fields() { return fields_; }
  // Nothing is shown any more.
  void Clear();

  void RunForward() { Run(Stage::kForward); }
  // REQUIRES: the call is hijacked.
  void RunHijacker() { Run(Stage::kHijacker); }
  void RunReverse() { Run(Stage::kReverse); }

  bool is_hijacked() const { return interceptors_.is_hijacked(); }
  // What the hijacking interceptor said.
  bool send_failed() const { return send_failed_; }
  bool receive_failed() const { return receive_failed_; }
  // The factory of the interceptor that is asked.
  size_t current_place() const { return interceptors_.place(index_); }

 private:
  static_assert(static_cast<int>(Hook::NUM_INTERCEPTION_HOOKS) <= 32);
  static uint32_t BitOf(Hook hook) {
    return uint32_t{1} << static_cast<int>(hook);
  }

  // Whether an interceptor may take the call over here.
  virtual bool MayBeHijacked() const { return false; }
  // Every interceptor that a stage is for has seen it. May destroy the batch.
  virtual void OnStageDone(Stage stage) = 0;

  void Run(Stage stage);
  // The batch may be gone afterwards.
  void Ask() { interceptors_.at(index_).Intercept(this); }

  Interceptors& interceptors_;
  uint32_t hooks_ = 0;
  Fields fields_;
  bool send_failed_ = false;
  bool receive_failed_ = false;
  Stage stage_ = Stage::kForward;
  size_t index_ = 0;  // of the one that is asked
};

// PRE_SEND_CANCEL, for all, whoever hijacked the call.
void ShowCancel(Interceptors& interceptors);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_INTERCEPTION_BATCH_H_
