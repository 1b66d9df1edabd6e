#include "tests/transport/frame_check.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace rdma::testing {
namespace {

const char* CheckReadable(absl::Span<const std::byte> segments,
                          size_t fewest = 1) {
  if (segments.size() % kSegmentBytes != 0) return "a piece of a segment";
  const size_t count = segments.size() / kSegmentBytes;
  if (count < fewest || count > kMaxSegments) return "a number of segments";
  for (size_t i = 0; i < count; ++i) {
    const Segment segment = DecodeSegment(segments.data() + i * kSegmentBytes);
    if (segment.length == 0) return "an empty segment";
    // The last byte's address, not the end's, has to exist.
    if (segment.address > UINT64_MAX - (segment.length - 1)) {
      return "a segment beyond the address space";
    }
  }
  return nullptr;
}

const char* CheckLayout(const FrameView& view,
                        absl::Span<const std::byte> payload) {
  const size_t prefix_bytes = PrefixBytes(view.fields);
  if (prefix_bytes > payload.size()) return "a prefix beyond the payload";
  const std::byte* at = payload.data() + prefix_bytes;
  if (view.header.data() != at) return "a header in another place";
  at = view.header.end() + (view.in_parts() ? kTotalBytes : 0);
  if (view.message.data() != at) return "a message in another place";
  at = view.message.end();
  if (view.attachment.data() != at) return "an attachment in another place";
  at = view.attachment.end();
  if (at != payload.data() + payload.size()) return "bytes of no part";
  return nullptr;
}

const char* CheckEncodesBack(uint32_t tag, const FrameView& view,
                             absl::Span<const std::byte> payload) {
  if (EncodeTag(view.fields) != tag) return "another tag";
  std::vector<std::byte> prefix(PrefixBytes(view.fields));
  EncodePrefix(view.fields, prefix.data());
  return std::equal(prefix.begin(), prefix.end(), payload.begin())
             ? nullptr
             : "another prefix";
}

// What DecodePlainFrame takes, it takes as DecodeFrame does; and it takes what
// is plain.
const char* CheckPlain(uint32_t tag, absl::Span<const std::byte> payload,
                       bool accepted, const FrameView& view) {
  const bool is_plain = accepted && !view.has_offer() &&
                        !view.has(kMethodDefinition) && !view.has(kNotRun) &&
                        !view.has(kWantAnswer) &&
                        (view.fields.kind == FrameKind::kOpen ||
                         view.fields.kind == FrameKind::kData);
  FrameView plain;
  plain.fields.method_path = "of another frame";
  if (DecodePlainFrame(tag, payload, &plain) != is_plain) {
    return "plain to one and not to the other";
  }
  if (!is_plain) return nullptr;
  if (!plain.fields.method_path.empty()) return "another frame's path";
  if (const char* wrong = CheckLayout(plain, payload)) return wrong;
  return CheckEncodesBack(tag, plain, payload);
}

// The same of OnlyMessage.
template <FrameKind kKind, Beside kBeside = Beside::kNothing>
const char* CheckOnlyMessage(uint32_t tag, absl::Span<const std::byte> payload,
                             bool accepted, const FrameView& view) {
  const bool is_one =
      accepted && view.fields.kind == kKind &&
      view.fields.flags == (kEnd | kHasMessage) && view.header.empty() &&
      (kBeside == Beside::kAttachment || view.attachment.empty());
  const OnlyMessage<kKind, kBeside> frame(tag, payload);
  if (frame.is_one() != is_one) {
    return "the only message to one and not to the other";
  }
  if (!is_one) return nullptr;
  if (frame.slot() != view.fields.slot ||
      frame.detail() != view.fields.detail ||
      frame.call_sequence() != view.fields.call_sequence ||
      frame.credits() != view.fields.credits ||
      frame.timeout_us() != view.fields.timeout_us) {
    return "another only message's fields";
  }
  if (payload.data() + frame.kFrontBytes != view.message.data() ||
      frame.message_bytes() != view.message.size() ||
      frame.attachment_bytes() != view.attachment.size()) {
    return "another only message";
  }
  return nullptr;
}

}  // namespace

const char* CheckDecode(uint32_t tag, absl::Span<const std::byte> bytes,
                        bool* accepted) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  const absl::Span<const std::byte> payload(copy.get(), bytes.size());

  FrameView view;
  *accepted = DecodeFrame(tag, payload, &view) == nullptr;
  if (const char* wrong = CheckPlain(tag, payload, *accepted, view)) {
    return wrong;
  }
  for (const auto check :
       {CheckOnlyMessage<FrameKind::kOpen>, CheckOnlyMessage<FrameKind::kData>,
        CheckOnlyMessage<FrameKind::kOpen, Beside::kAttachment>,
        CheckOnlyMessage<FrameKind::kData, Beside::kAttachment>}) {
    if (const char* wrong = check(tag, payload, *accepted, view)) return wrong;
  }
  if (!*accepted) return nullptr;
  if (const char* wrong = CheckLayout(view, payload)) return wrong;
  if (const char* wrong = CheckEncodesBack(tag, view, payload)) return wrong;
  if (view.fields.method_path.size() > kMaxPathBytes) return "a long path";
  if (view.in_parts() != (view.message_total != 0)) return "a total of nothing";
  if (view.has(kMessageOffer)) {
    const size_t fewest = view.in_parts() ? 0 : 1;
    if (const char* wrong = CheckReadable(view.message, fewest)) return wrong;
  } else if (view.fields.kind == FrameKind::kPart) {
    if (const char* wrong = CheckReadable(view.message)) return wrong;
  } else if (view.message.size() != view.fields.message_bytes) {
    return "a message of another size";
  }
  return view.has(kAttachmentOffer) ? CheckReadable(view.attachment) : nullptr;
}

}  // namespace rdma::testing
