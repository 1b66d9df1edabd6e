#include "benchmarks/peers/ucx_server.h"

#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "benchmarks/peers/spinning.h"
#include "benchmarks/test_pattern.h"
#include "gflags/gflags.h"

DECLARE_bool(leave_data);

namespace benchmarks {

absl::StatusOr<std::string> UcxServer::Open() {
  absl::Status status = worker_.Open();
  if (!status.ok()) return status;
  status.Update(worker_.Handle<&UcxServer::OnSetup>(kSetup, this));
  for (const MessageId id : {kEcho, kPut, kPutChecked, kOneWay}) {
    status.Update(worker_.Handle<&UcxServer::OnMessage>(id, this));
  }
  if (!status.ok()) return status;
  return worker_.HexAddress();
}

absl::Status UcxServer::Run(int stop_fd) {
  StopWatch watch(stop_fd);
  while (worker_.status().ok()) {
    if (worker_.Progress()) continue;
    if (setup_ && slots_.IsIdle()) SetUp();
    if (watch.MustStop()) break;
  }
  // The client flushed what says that its last fetches are over.
  for (int i = 0; i < 100'000 && !slots_.IsIdle(); ++i) worker_.Progress();
  return worker_.status();
}

ucs_status_t UcxServer::OnSetup(const Message& message) {
  Setup setup;
  if (message.bytes != sizeof(setup) || message.is_rendezvous() ||
      (message.param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) {
    worker_.Fail(absl::InternalError("a set-up that is none"));
    return UCS_OK;
  }
  std::memcpy(&setup, message.data, sizeof(setup));
  setup_ = setup;
  client_ = message.param->reply_ep;
  return UCS_OK;
}

void UcxServer::SetUp() {
  worker_.Fail(slots_.Create(this, setup_->slots, setup_->payload_bytes));
  bytes_ = setup_->payload_bytes;
  setup_.reset();
  one_way_messages_ = one_way_bytes_ = 0;
  worker_.Send(client_, kReady, &ready_, nullptr, 0, &ready_pending_);
}

ucs_status_t UcxServer::OnMessage(const Message& message) {
  ServerSlot* const slot = slots_.Find(message.header.slot);
  if (slot == nullptr || message.bytes != bytes_ ||
      message.header.bytes != bytes_) {
    worker_.Fail(absl::DataLossError(absl::StrCat(
        "a message of ", message.bytes, " bytes came, not of ", bytes_)));
    return UCS_OK;
  }
  slot->id = message.id;
  slot->header.bytes = static_cast<uint32_t>(message.bytes);
  if (message.is_rendezvous()) {
    if (worker_.Fetch(message.data, slot->buffer, message.bytes,
                      ServerSlot::OnFetched, slot)) {
      OnData(*slot);
    }
    return UCS_INPROGRESS;
  }
  return OnEager(*slot, message);
}

ucs_status_t UcxServer::OnEager(ServerSlot& slot, const Message& message) {
  // An echo can be sent out of UCX's buffer, if that can be kept should the
  // FIFO back be full. Else the data are few bytes.
  const bool is_echo = message.id == kEcho;
  if (is_echo ? message.can_be_held() : FLAGS_leave_data) {
    Respond(slot, static_cast<const char*>(message.data));
    if (!is_echo || slot.pending.sends == 0) return UCS_OK;
    slot.pending.held = message.data;
    return UCS_INPROGRESS;
  }
  std::memcpy(slot.buffer, message.data, message.bytes);
  Respond(slot, slot.buffer);
  return UCS_OK;
}

void UcxServer::Respond(ServerSlot& slot, const char* data) {
  switch (slot.id) {
    case kEcho:
      return worker_.Send(client_, kAnswer, &slot.header, data, bytes_,
                          &slot.pending);
    case kPutChecked:
      slot.checksum = Checksum(std::string_view(data, bytes_));
      return worker_.Send(client_, kReceipt, &slot.header, &slot.checksum,
                          sizeof(slot.checksum), &slot.pending);
    case kOneWay:
      return CountOneWay(slot);
    default:
      return worker_.Send(client_, kReceipt, &slot.header, nullptr, 0,
                          &slot.pending);
  }
}

void UcxServer::CountOneWay(ServerSlot& slot) {
  one_way_bytes_ += bytes_;
  if (++one_way_messages_ % kGroup != 0) return;
  Header& header = receipts_[one_way_messages_ / kGroup % kGroups];
  header = {static_cast<uint32_t>(one_way_messages_ / kGroup - 1),
            static_cast<uint32_t>(one_way_bytes_)};
  one_way_bytes_ = 0;
  worker_.Send(client_, kGroupReceipt, &header, nullptr, 0, &slot.pending);
}

}  // namespace benchmarks
