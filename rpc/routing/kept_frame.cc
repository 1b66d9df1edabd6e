#include "rpc/routing/kept_frame.h"

#include <utility>

namespace rpc::routing {
namespace {

std::string CopyOf(absl::Span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::Span<const std::byte> ViewOf(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

KeptFrame::KeptFrame(OutgoingFrame&& frame)
    : header_(CopyOf(frame.header)),
      small_message_(CopyOf(frame.small_message)),
      frame_(std::move(frame)) {
  frame_.small_message_room = 0;
  frame_.sent_by_result = false;  // whoever gave it has its result already
  frame_.header = ViewOf(header_);
  frame_.small_message = ViewOf(small_message_);
}

HeldIncomingFrame::HeldIncomingFrame(IncomingFrame& frame)
    : header_(CopyOf(frame.header)), frame_(std::move(frame)) {
  frame_.header = ViewOf(header_);
}

}  // namespace rpc::routing
