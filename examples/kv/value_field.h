// The `value` that messages of kv.proto have: small inside the message, large
// beside it.
//
//   context.set_attachment(kv::SetValue(std::move(value), &request));
//   absl::Status status = kv::CheckAttachment(request, attachment);
//
// Thread rule: pure functions.
#ifndef VERBENA_EXAMPLES_KV_VALUE_FIELD_H_
#define VERBENA_EXAMPLES_KV_VALUE_FIELD_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "examples/kv/limits.h"
#include "rpc/buffer.h"

namespace kv {

// Says where the value is. Returns what is to be attached: nothing where the
// value is inside.
template <typename Message>
rpc::BufferChain SetValue(rpc::BufferChain value, Message* message) {
  if (value.size() > kMaxInlineValueBytes) {
    message->set_attached_bytes(value.size());
    return value;
  }
  if (value.contiguous()) {
    const std::string_view view = value.front_view();
    message->set_inline_value(view.data(), view.size());
  } else {
    message->set_inline_value(value.ToString());
  }
  return {};
}

// Not OK where the sender says one thing and attached another.
template <typename Message>
absl::Status CheckAttachment(const Message& message,
                             const rpc::BufferChain& attachment) {
  if (!message.has_attached_bytes()) {
    if (attachment.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the message has an attachment and does not say so: set "
        "attached_bytes");
  }
  if (attachment.size() == message.attached_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attached_bytes is ", message.attached_bytes(),
                   " and the attachment has ", attachment.size()));
}

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_VALUE_FIELD_H_
