#include "rdma_transport/call_delivery.h"

#include <cassert>
#include <utility>

#include "absl/base/attributes.h"
#include "rdma_transport/call_opening.h"
#include "rdma_transport/connection.h"

namespace rdma {
namespace {

// It stays where it is.
void SetHeader(HeldFrame& held) {
  held.frame.header = {reinterpret_cast<const std::byte*>(held.header.data()),
                       held.header.size()};
}

std::unique_ptr<HeldFrame> MakeHeld(rpc::IncomingFrame& frame) {
  auto held = std::make_unique<HeldFrame>();
  held->header.assign(reinterpret_cast<const char*>(frame.header.data()),
                      frame.header.size());
  held->frame = std::move(frame);
  SetHeader(*held);
  return held;
}

}  // namespace

void CallDelivery::Keep(Call& call, rpc::IncomingFrame& frame, bool opens) {
  call.inbox.push_back(MakeHeld(frame))->opens = opens;
  if (!call.busy) poller_->MakeReady(&call);
}

void CallDelivery::DeliverOrHold(Call& call, rpc::IncomingFrame& frame) {
  if (!call.busy && call.inbox.empty()) {
    DeliverFrame(call, frame);
  } else {
    call.inbox.push_back(MakeHeld(frame));
  }
}

template <typename Callback>
void CallDelivery::RunCallback(Call& call, bool quick, Callback callback) {
  call.busy = true;
  if (poller_->RunCallback(quick, callback)) {
    AfterCallback(call, /*at_tail=*/true);
  } else {
    poller_->Run([this, &call] { AfterCallback(call, /*at_tail=*/false); });
  }
}

void CallDelivery::DeliverArriving(Call& call) {
  const std::unique_ptr<HeldFrame> held = call.inbox.pop_front();
  SetHeader(*held);
  RunCallback(call, /*quick=*/false, [&] {
    call.sink->OnFrame(held->frame);
    held->arriving->StopParsing();
  });
}

HeldFrame* CallDelivery::Hold(Call& call, bool opens) {
  auto held = std::make_unique<HeldFrame>();
  held->ready = false;
  held->opens = opens;
  return call.inbox.push_back(std::move(held));
}

void CallDelivery::Complete(Call& call, HeldFrame* held) {
  SetHeader(*held);
  held->ready = true;
  if (!call.busy) poller_->MakeReady(&call);
}

void CallDelivery::Sent(Call& call) {
  ++call.sent_count;
  if (!call.busy) poller_->MakeReady(&call);
}

void CallDelivery::Close(Call& call, rpc::CallOutcome outcome) {
  if (call.closed) return;
  if (!outcome.status.ok()) {
    call.cut_off.store(true, std::memory_order_release);
    if (call.busy && !call.is_client) server_sink_->OnCutOff(call.handle);
  }
  call.outcome = std::move(outcome);
  CloseInOrder(call);
}

ABSL_ATTRIBUTE_NOINLINE void CallDelivery::DropRest(Call& call) {
  call.inbox.clear();
  call.sent_count = 0;
  if (!call.busy) poller_->MakeReady(&call);
}

bool CallDelivery::HasEvent(const Call& call) const {
  if (!call.inbox.empty()) return call.inbox.front().ready;
  return call.closed || call.sent_count > 0;
}

void CallDelivery::DeliverNext(Call& call) {
  if (call.busy || !HasEvent(call)) return;
  if (!call.inbox.empty()) {
    const std::unique_ptr<HeldFrame> held = call.inbox.pop_front();
    if (held->frame.end && call.is_client && call.connection != nullptr) {
      call.connection->FinishCall(call);
    }
    if (held->opens) {
      DeliverOpen(call, held->frame, held->arriving.get());
    } else {
      DeliverFrame(call, held->frame);
    }
    return;
  }
  // What was sent counts, also where the peer has ended the call since.
  if (call.sent_count == 0) {
    DeliverClosed(call);
    return;
  }
  --call.sent_count;
  RunCallback(call, call.quick_sink, [&call] { call.sink->OnSent(); });
}

void CallDelivery::DeliverFrame(Call& call, rpc::IncomingFrame& frame) {
  assert(frame.arriving == nullptr);
  RunCallback(call, call.quick_sink,
              [&call, &frame] { call.sink->OnFrame(frame); });
}

void CallDelivery::DeliverOpen(Call& call, rpc::IncomingFrame& frame,
                               ArrivingMessage* arriving) {
  DeliverOpenInLine(call, frame, arriving);
}

ABSL_ATTRIBUTE_NOINLINE void CallDelivery::AfterOpenLater(Call& call,
                                                          rpc::CallSink* sink) {
  poller_->Run(
      [this, &call, sink] { AfterOpen(call, sink, /*at_tail=*/false); });
}

void CallDelivery::AfterOpen(Call& call, rpc::CallSink* sink, bool at_tail) {
  std::exchange(call.pinned, nullptr)->Unpin();
  call.sink = sink;
  call.quick_sink = sink != nullptr && sink->IsQuick();
  AfterCallback(call, at_tail);
}

inline void CallDelivery::AfterCallback(Call& call, bool at_tail) {
  call.busy = false;
  if (call.sink == nullptr && !call.closed) {
    call.owner->OnCallRefused(call);
  } else if (call.owes_done && call.connection != nullptr) {
    call.connection->SendDone(call);
  }
  if (!HasEvent(call)) return;
  if (at_tail && call.closed && call.inbox.empty() && !call.queued &&
      call.sent_count == 0) {
    DeliverClosed(call);
  } else {
    poller_->MakeReady(&call);
  }
}

inline void CallDelivery::DeliverClosed(Call& call) {
  call.busy = true;
  const auto close = [&call] {
    if (call.sink != nullptr) call.sink->OnClosed(call.outcome);
  };
  if (poller_->RunCallback(call.quick_sink, close)) {
    Destroy(call);
  } else {
    DestroyLater(call);
  }
}

ABSL_ATTRIBUTE_NOINLINE void CallDelivery::DestroyLater(Call& call) {
  poller_->Run([this, &call] { Destroy(call); });
}

void CallDelivery::TellDrained() {
  if (poller_->calls().live() == 0) {
    poller_->SetEvent(*std::exchange(drained_, nullptr));
  }
}

void CallDelivery::NotifyWhenDrained(rpc::Event* event) {
  if (poller_->calls().live() == 0) {
    poller_->SetEvent(*event);
  } else {
    drained_ = event;
  }
}

}  // namespace rdma
