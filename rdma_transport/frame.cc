#include "rdma_transport/frame.h"

#include <cstring>

namespace rdma {
namespace {

// Of a segment, and of a message in parts.
constexpr uint64_t kMostOffered = uint64_t{1} << 48;

using frame_internal::Load;
using frame_internal::Store;

// Bytes that follow the fixed part: where a view's parts are cut off.
class Cursor {
 public:
  explicit Cursor(absl::Span<const std::byte> rest) : rest_(rest) {}

  bool Take(size_t bytes, absl::Span<const std::byte>* out) {
    if (bytes > rest_.size()) return false;
    *out = rest_.first(bytes);
    rest_.remove_prefix(bytes);
    return true;
  }
  absl::Span<const std::byte> rest() const { return rest_; }

 private:
  absl::Span<const std::byte> rest_;
};

const char* TakePath(Cursor& cursor, FrameFields* fields) {
  absl::Span<const std::byte> bytes;
  if (!cursor.Take(2, &bytes)) return "a method definition without a length";
  const size_t path_bytes = Load<uint16_t>(bytes.data());
  if (path_bytes == 0 || path_bytes > kMaxPathBytes) {
    return "a method path of a wrong length";
  }
  if (!cursor.Take(path_bytes, &bytes)) return "a method path cut short";
  fields->method_path = {reinterpret_cast<const char*>(bytes.data()),
                         bytes.size()};
  return nullptr;
}

bool IsCallFrame(const FrameFields& fields) {
  return fields.kind == FrameKind::kOpen || fields.kind == FrameKind::kData;
}

const char* CheckFlags(const FrameFields& fields) {
  constexpr uint8_t kCallFlags =
      kEnd | kHasMessage | kMessageOffer | kAttachmentOffer;
  if (!IsCallFrame(fields) && (fields.flags & kCallFlags) != 0) {
    return "flags that do not go with the kind";
  }
  if ((fields.flags & kMethodDefinition) != 0 &&
      fields.kind != FrameKind::kOpen) {
    return "a method definition outside an open";
  }
  if ((fields.flags & kMessageOffer) != 0 &&
      (fields.flags & kHasMessage) == 0) {
    return "an offer of a message without a message";
  }
  if ((fields.flags & kHasMessage) == 0 && fields.message_bytes != 0 &&
      fields.kind != FrameKind::kPart) {
    return "the bytes of a message without a message";
  }
  if (IsCallFrame(fields) && (fields.flags & kInParts) != 0 &&
      (fields.flags & kMessageOffer) == 0) {
    return "a message in parts that is not offered";
  }
  return nullptr;
}

const char* CheckSegments(absl::Span<const std::byte> segments, size_t fewest) {
  if (segments.size() < fewest * kSegmentBytes ||
      segments.size() % kSegmentBytes != 0 ||
      segments.size() / kSegmentBytes > kMaxSegments) {
    return "an offer with a wrong number of segments";
  }
  for (size_t at = 0; at < segments.size(); at += kSegmentBytes) {
    const Segment segment = DecodeSegment(segments.data() + at);
    if (segment.length == 0 ||
        segment.address + segment.length < segment.address ||
        segment.length > kMostOffered) {
      return "an offered segment of a wrong length";
    }
  }
  return nullptr;
}

}  // namespace

void EncodeSegment(const Segment& segment, std::byte* out) {
  Store(out, segment.address);
  Store(out + 8, segment.length);
  Store(out + 16, segment.rkey);
  Store(out + 20, uint32_t{0});
}

Segment DecodeSegment(const std::byte* in) {
  return {Load<uint64_t>(in), Load<uint64_t>(in + 8), Load<uint32_t>(in + 16)};
}

// Segments are at most 2^48 bytes each, 64 of them, and so is a whole.
int64_t FrameView::WindowBytes() const {
  if (has(kEnd)) return 0;
  const auto bytes_of = [](absl::Span<const std::byte> part, bool offered) {
    if (!offered) return static_cast<int64_t>(part.size());
    int64_t bytes = 0;
    for (size_t at = 0; at < part.size(); at += kSegmentBytes) {
      bytes += static_cast<int64_t>(DecodeSegment(part.data() + at).length);
    }
    return bytes;
  };
  return kFrameWindow + fields.header_bytes +
         (message_total != 0 ? static_cast<int64_t>(message_total)
                             : bytes_of(message, has(kMessageOffer))) +
         bytes_of(attachment, has(kAttachmentOffer));
}

const char* DecodeFrame(uint32_t tag, absl::Span<const std::byte> payload,
                        FrameView* view) {
  FrameFields& fields = view->fields;
  fields = FrameFields();
  const uint32_t kind = tag >> 28;
  if (kind == 0 || kind > kMaxFrameKind) return "an unknown kind of frame";
  fields.kind = static_cast<FrameKind>(kind);
  fields.flags = static_cast<uint8_t>(tag >> 20);
  fields.slot = tag & kMaxSlot;

  Cursor cursor(payload);
  absl::Span<const std::byte> prefix;
  if (!cursor.Take(kFramePrefixBytes, &prefix)) return "a frame cut short";
  fields.call_sequence = Load<uint32_t>(prefix.data());
  fields.credits = Load<uint16_t>(prefix.data() + 4);
  fields.header_bytes = Load<uint16_t>(prefix.data() + 6);
  fields.message_bytes = Load<uint32_t>(prefix.data() + 8);
  fields.detail = Load<uint32_t>(prefix.data() + 12);
  if (const char* wrong = CheckFlags(fields)) return wrong;

  if (fields.kind == FrameKind::kOpen) {
    absl::Span<const std::byte> extra;
    if (!cursor.Take(kOpenExtraBytes, &extra)) return "an open cut short";
    fields.timeout_us = Load<uint64_t>(extra.data());
    if (view->has(kMethodDefinition)) {
      if (const char* wrong = TakePath(cursor, &fields)) return wrong;
    }
  }
  if (!cursor.Take(fields.header_bytes, &view->header)) {
    return "a header cut short";
  }
  view->message_total = 0;
  if (view->in_parts()) {
    absl::Span<const std::byte> total;
    if (!cursor.Take(kTotalBytes, &total)) return "a message cut short";
    view->message_total = Load<uint64_t>(total.data());
    if (view->message_total == 0 || view->message_total > kMostOffered) {
      return "a message in parts of a wrong size";
    }
  }
  const uint64_t message_bytes =
      view->has(kMessageOffer) ? uint64_t{fields.message_bytes} * kSegmentBytes
                               : fields.message_bytes;
  if (!cursor.Take(message_bytes, &view->message)) {
    return "a message cut short";
  }
  view->attachment = cursor.rest();
  if (!IsCallFrame(fields) && !view->attachment.empty()) {
    return "bytes after a control frame";
  }
  if (view->has(kMessageOffer) || fields.kind == FrameKind::kPart) {
    const size_t fewest = view->in_parts() ? 0 : 1;
    if (const char* wrong = CheckSegments(view->message, fewest)) return wrong;
  }
  if (view->has(kAttachmentOffer)) {
    if (const char* wrong = CheckSegments(view->attachment, 1)) return wrong;
  }
  return nullptr;
}

}  // namespace rdma
