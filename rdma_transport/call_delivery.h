// Hands calls' events to their sinks: one callback at a time for each call, in
// order, never after the last one.
//
// What cannot be delivered at once (a callback of the call is running, or an
// earlier frame's offer is still being read) waits in the call's inbox.
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_CALL_DELIVERY_H_
#define VERBENA_RDMA_TRANSPORT_CALL_DELIVERY_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/optimization.h"
#include "rdma_transport/arriving_message.h"
#include "rdma_transport/call.h"
#include "rdma_transport/frame.h"
#include "rdma_transport/poller.h"
#include "rpc/transport.h"

namespace rdma {

// The last frame of its direction: a message, and as much of an attachment as
// is behind it in the buffer.
template <Beside kBeside>
rpc::IncomingFrame IncomingOf(rpc::Buffer&& buffer, size_t message_bytes,
                              uint32_t code) {
  if constexpr (kBeside == Beside::kNothing) {
    return rpc::IncomingFrame(std::move(buffer), code);
  }
  // Beside most attachments it is empty.
  rpc::Buffer message;
  if (message_bytes != 0) message = buffer.Slice(0, message_bytes);
  rpc::IncomingFrame frame(std::move(message), code);
  buffer.remove_prefix(message_bytes);
  frame.attachment.Append(std::move(buffer));
  return frame;
}

class CallDelivery final : public CallDeliverer {
 public:
  // Connects to the poller it delivers for, and on a server to the sink of new
  // calls. Before anything is delivered.
  void Init(Poller* poller) { poller_ = poller; }
  void SetServerSink(rpc::ServerSink* sink) { server_sink_ = sink; }

  // Where callbacks wait (Poller::callbacks_wait): keeps a frame of Deliver's
  // in the call's order.
  void Keep(Call& call, rpc::IncomingFrame& frame, bool opens);

  // Whether the message that opened a server's call, or the last one of a
  // client's, may be delivered as an ArrivingMessage: the client's at once, by
  // DeliverArriving on this thread.
  bool TakesArriving(const Call& call) const {
    return call.is_client ? call.sink->ParsesWhatArrives()
                          : server_sink_->ParsesWhatArrives(call.method->token);
  }

  // Where one of these five returns, the turnstile may be lost, and even where
  // it is held the connection may be gone: it must be the caller's last action.

  // Delivers a server's new call, with its first frame.
  void DeliverOpen(Call& call, rpc::IncomingFrame& frame,
                   ArrivingMessage* arriving = nullptr);
  // The same, in the caller: call_opening.h.
  void DeliverOpenInLine(Call& call, rpc::IncomingFrame& frame,
                         ArrivingMessage* arriving = nullptr);
  // Delivers a further frame now if nothing is before it, else later.
  void DeliverOrHold(Call& call, rpc::IncomingFrame& frame);

  // Delivers the last frame of a closed call (CloseAfterLastFrame), before
  // which nothing is: its last two callbacks in one go. False: the turnstile is
  // lost; the connection may be gone in either case.
  bool DeliverLast(Call& call, rpc::IncomingFrame& frame) {
    return RunLastCallbacks(call, [&call, &frame] {
      call.sink->OnFrame(frame);
      call.sink->OnClosed(call.outcome);
    });
  }
  // The same where it is an OK and what IncomingOf makes a frame of. The buffer
  // stays where the sink did not take it over.
  template <Beside kBeside>
  bool DeliverOnlyMessage(Call& call, rpc::Buffer& buffer,
                          size_t message_bytes) {
    return RunLastCallbacks(call, [&call, &buffer, message_bytes] {
      const std::string_view message = {
          reinterpret_cast<const char*>(buffer.data()), message_bytes};
      if (call.sink->OnOnlyMessage(
              message, kBeside == Beside::kNothing ? nullptr : &buffer))
          [[likely]] {
        assert(kBeside == Beside::kNothing || buffer.block() == nullptr);
        return;
      }
      rpc::IncomingFrame frame =
          IncomingOf<kBeside>(std::move(buffer), message_bytes, /*code=*/0);
      call.sink->OnFrame(frame);
      call.sink->OnClosed(call.outcome);
    });
  }

  // Delivers a client's last frame, which was held, with its ArrivingMessage.
  // REQUIRES: nothing is before it, and no callback of the call runs.
  void DeliverArriving(Call& call);

  // Reserves the next place in the call's order for a frame that is not there
  // yet; Complete fills it.
  HeldFrame* Hold(Call& call, bool opens);
  void Complete(Call& call, HeldFrame* held);

  // A frame given to Send is done with.
  void Sent(Call& call);

  // Decides how the call ended and has its last callback made. Frames that were
  // not delivered yet are dropped. REQUIRES: nothing is being read for it.
  void Close(Call& call, rpc::CallOutcome outcome);

  // The same with OK, for a server's call that was answered.
  void CloseInOrder(Call& call) {
    if (call.closed) [[unlikely]]
      return;
    CloseAfterLastFrame(call);
    if (ABSL_PREDICT_FALSE(!call.busy || !call.inbox.empty() ||
                           call.sent_count != 0)) {
      DropRest(call);
    }
  }

  // The same for a call whose last frame is about to be delivered, in order:
  // DeliverLast, DeliverOrHold or Complete must follow.
  void CloseAfterLastFrame(Call& call) {
    if (call.closed) return;
    call.closed = true;
    poller_->timers().Cancel(&call);
  }

  // Sets `event` once no call is left and no callback runs. One at a time.
  void NotifyWhenDrained(rpc::Event* event);
  void ForgetDrained() { drained_ = nullptr; }

  void DeliverNext(Call& call) override;

 private:
  // Runs what is the last of a call's. False: the turnstile is lost.
  template <typename Callback>
  bool RunLastCallbacks(Call& call, Callback callback) {
    assert(call.closed && !call.busy && !call.queued && call.inbox.empty() &&
           call.sink != nullptr);
    call.busy = true;
    if (poller_->RunCallback(call.quick_sink, callback)) [[likely]] {
      Destroy(call);
      return true;
    }
    DestroyLater(call);
    return false;
  }
  // Runs one of the call's, after which it may have another.
  template <typename Callback>
  void RunCallback(Call& call, bool quick, Callback callback);
  void DeliverFrame(Call& call, rpc::IncomingFrame& frame);
  void DeliverClosed(Call& call);
  void AfterOpen(Call& call, rpc::CallSink* sink, bool at_tail);
  void AfterOpenLater(Call& call, rpc::CallSink* sink);
  // `at_tail`: as the caller's last action, so that a callback may follow.
  void AfterCallback(Call& call, bool at_tail);
  void Destroy(Call& call) {
    poller_->calls().Destroy(&call);
    if (drained_ != nullptr) [[unlikely]]
      TellDrained();
  }
  void DestroyLater(Call& call);
  // Of a call that is closed: but for its last callback.
  void DropRest(Call& call);
  void TellDrained();
  bool HasEvent(const Call& call) const;

  Poller* poller_ = nullptr;
  rpc::ServerSink* server_sink_ = nullptr;
  rpc::Event* drained_ = nullptr;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CALL_DELIVERY_H_
