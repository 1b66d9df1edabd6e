// What a server's call sends: its response and status, metadata ahead of them,
// and a stream's messages.
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rpc/internal/any_message_codec.h"
#include "rpc/internal/message_in_parts.h"
#include "rpc/internal/sent_metadata.h"
#include "rpc/internal/server_call.h"

namespace rpc::internal {
namespace {

// EncodeAnyMessage's allocator.
struct CallMemory {
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) {
    return transport.AllocateBuffer(call, bytes);
  }

  ServerTransport& transport;
  const CallHandle call;
};

// The same for a call's one response.
struct ResponseMemory : CallMemory {
  std::shared_ptr<GrowingMessage> Grow(size_t bytes) {
    return transport.GrowMessage(call, bytes);
  }
};

absl::Span<const std::byte> AsBytes(const std::string& bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()),
                             bytes.size());
}

void WriteStatusText(const Status& status, HeaderBlockWriter& writer) {
  if (status.ok()) return;
  const std::string message = status.error_message();
  if (!message.empty()) writer.Add(HeaderKind::kStatusMessage, "", message);
  const std::string details = status.error_details();
  if (!details.empty()) writer.Add(HeaderKind::kStatusDetails, "", details);
}

}  // namespace

template <class Memory, class Response>
inline bool ServerCall::EncodeResponse(const Response& response,
                                       MessageScratch& scratch,
                                       OutgoingFrame& frame, Status* error) {
  if (!context_->sent_attachment_.empty()) {
    frame.attachment = std::move(context_->sent_attachment_);
    if (!CheckAttachmentSize(frame.attachment.size(),
                             core_->transport->limits(), error)) {
      return false;
    }
  }
  Memory memory = {*core_->transport, handle_};
  bool encoded;
  if constexpr (std::is_same_v<Response, ConstMessageRef>) {
    encoded = EncodeAnyMessage(response, memory, core_->encode_limits, scratch,
                               frame, error);
  } else {
    encoded = EncodeMessage(response, memory, core_->encode_limits, scratch,
                            frame, error, method_->messages.response);
  }
  moved_bytes_ += frame.small_message.size() + frame.message.size();
  return encoded;
}

void ServerCall::Respond(const Status& status, ConstMessageRef response,
                         bool last_act) {
  // The transport may have shut down meanwhile.
  const auto* const message = response.lite();
  if (ABSL_PREDICT_FALSE(closed() || !status.ok() ||
                         context_->sent_ != nullptr || message == nullptr)) {
    return RespondUnusually(status, response, last_act);
  }
  MessageScratch scratch;
  OutgoingFrame frame;
  Status error;
  if (ABSL_PREDICT_FALSE(
          !EncodeResponse<ResponseMemory>(*message, scratch, frame, &error))) {
    return RespondWithHeader(error, ConstMessageRef(), last_act);
  }
  frame.end = true;
  if (ABSL_PREDICT_FALSE(frame.growing != nullptr)) {
    return RespondInParts(frame, *message);
  }
  frame.last_act = last_act && CallbackScope::current() == this;
  core_->transport->Send(handle_, std::move(frame));
}

// Within OnCall a call is not closed: OnClosed comes afterwards.
void ServerCall::RespondAndFinish(const Status& status,
                                  ConstMessageRef response, bool last_act) {
  const auto* const message = response.lite();
  if (ABSL_PREDICT_FALSE(CallbackScope::current() != this || !status.ok() ||
                         context_->sent_ != nullptr || message == nullptr ||
                         !context_->sent_attachment_.empty())) {
    return RespondUnusuallyAndFinish(status, response, last_act);
  }
  MessageScratch scratch;
  OutgoingFrame frame;
  const size_t size =
      EncodeSmallMessage(*message, core_->encode_limits, scratch, frame,
                         method_->messages.response);
  if (ABSL_PREDICT_FALSE(size > core_->encode_limits.copy_bytes)) {
    return RespondLargeAndFinish(*message, size, last_act);
  }
  moved_bytes_ += size;
  frame.end = true;
  frame.last_act = last_act;
  core_->transport->Send(handle_, std::move(frame));
  finished_here_.store(true, std::memory_order_relaxed);
}

ABSL_ATTRIBUTE_NOINLINE void ServerCall::RespondUnusuallyAndFinish(
    const Status& status, ConstMessageRef response, bool last_act) {
  Respond(status, response, last_act);
  Finished();
}

ABSL_ATTRIBUTE_NOINLINE void ServerCall::RespondLargeAndFinish(
    const google::protobuf::MessageLite& response, size_t size, bool last_act) {
  OutgoingFrame frame;
  Status error;
  ResponseMemory memory = {*core_->transport, handle_};
  if (!EncodeLargeMessage(response, size, memory, core_->encode_limits, frame,
                          &error, method_->messages.response)) {
    RespondWithHeader(error, ConstMessageRef(), last_act);
    return Finished();
  }
  moved_bytes_ += size;
  frame.end = true;
  if (frame.growing != nullptr) {
    RespondInParts(frame, response);
  } else {
    frame.last_act = last_act;
    core_->transport->Send(handle_, std::move(frame));
  }
  Finished();
}

// The call may be over for the transport then, but not for whoever calls this,
// to whom the message belongs.
ABSL_ATTRIBUTE_NOINLINE void ServerCall::RespondInParts(
    OutgoingFrame& frame, const google::protobuf::MessageLite& response) {
  MessageInParts rest(frame);
  core_->transport->Send(handle_, std::move(frame));
  rest.Write(response, NextWait::kUnknown);
}

void ServerCall::RespondUnusually(const Status& status,
                                  ConstMessageRef response, bool last_act) {
  if (interception_ != nullptr) {
    interception_->Respond(status, response, nullptr);
  } else if (!closed()) {
    RespondWithHeader(status, response, last_act);
  }
}

void ServerCall::RespondWithHeader(const Status& status,
                                   ConstMessageRef response, bool last_act) {
  MessageScratch scratch;
  OutgoingFrame frame;
  Status final_status = status;
  if (status.ok() && response.has_message()) {
    EncodeResponse<CallMemory>(response, scratch, frame, &final_status);
  }
  std::string header;
  Status error = EncodeHeader(final_status, header);
  if (!error.ok()) {
    final_status = std::move(error);
    header.clear();
    HeaderBlockWriter writer(&header);
    WriteStatusText(final_status, writer);
  }
  // An error goes alone.
  if (!final_status.ok()) frame = OutgoingFrame();
  frame.header = AsBytes(header);
  frame.end = true;
  frame.status_code = static_cast<uint32_t>(final_status.error_code());
  frame.last_act = last_act && CallbackScope::current() == this;
  core_->transport->Send(handle_, std::move(frame));
}

Status ServerCall::EncodeHeader(const Status& status, std::string& header) {
  HeaderBlockWriter writer(&header);
  if (context_->sent_ != nullptr) {
    if (!initial_metadata_sent_) {
      Status error = WritePairs(HeaderKind::kInitialMetadata,
                                context_->sent_->initial, writer);
      if (!error.ok()) return error;
    }
    Status error = WritePairs(HeaderKind::kTrailingMetadata,
                              context_->sent_->trailing, writer);
    if (!error.ok()) return error;
  }
  WriteStatusText(status, writer);
  return CheckHeaderSize(status, header.size());
}

Status ServerCall::CheckHeaderSize(const Status& status, size_t bytes) const {
  const size_t limit = core_->transport->limits().max_header_bytes;
  if (bytes <= limit) return Status();
  return Status(StatusCode::RESOURCE_EXHAUSTED,
                absl::StrCat("metadata and status text of ", bytes,
                             " bytes do not fit into a frame's header of ",
                             limit, " bytes; the call's own status was ",
                             StatusCodeName(status.error_code())));
}

// Metadata that is sent ahead of the last frame.
Status ServerCall::EncodeInitialHeader(std::string& header) {
  if (context_->sent_ == nullptr) return Status();
  HeaderBlockWriter writer(&header);
  Status error = WritePairs(HeaderKind::kInitialMetadata,
                            context_->sent_->initial, writer);
  return error.ok() ? CheckHeaderSize(error, header.size()) : error;
}

bool ServerCall::SendMessage(ConstMessageRef message, BufferChain&& attachment,
                             bool* sent, Status* error) {
  MessageScratch scratch;
  OutgoingFrame frame;
  std::string header;
  if (!initial_metadata_sent_) {
    *error = EncodeInitialHeader(header);
    if (!error->ok()) return false;
    frame.header = AsBytes(header);
  }
  SetAttachment(std::move(attachment));
  if (!EncodeResponse<CallMemory>(message, scratch, frame, error)) return false;
  initial_metadata_sent_ = true;
  frame.sent_by_result = true;
  *sent = core_->transport->Send(handle_, std::move(frame));
  return true;
}

bool ServerCall::SendInitialMetadataAlone() {
  if (interception_ == nullptr) return TrySendInitialMetadata();
  interception_->SendInitialMetadata();
  return true;
}

bool ServerCall::TrySendInitialMetadata() {
  if (initial_metadata_sent_) return true;
  initial_metadata_sent_ = true;
  std::string header;
  const Status error = EncodeInitialHeader(header);
  pending_.fetch_or(kPendingMetadata, std::memory_order_seq_cst);
  if (cut_off_.load(std::memory_order_seq_cst)) {
    // OnClosed may have looked before it was pending.
    return !TakePending(kPendingMetadata);
  }
  if (!error.ok()) {
    CancelWith(absl::Status(static_cast<absl::StatusCode>(error.error_code()),
                            error.error_message()));
    return true;
  }
  if (closed()) return true;
  OutgoingFrame frame;
  frame.header = AsBytes(header);
  core_->transport->Send(handle_, std::move(frame));
  return true;
}

}  // namespace rpc::internal
