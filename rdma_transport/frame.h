// The frames of docs/wire_format.md: one frame is one SEND, at most one receive
// buffer. This file lays them out and takes them apart; it decides nothing.
//
// The immediate of the SEND (the "tag") says what the frame is and which call
// it belongs to; a SEND with invalidate has no immediate, so there the tag is
// the first four bytes of the payload instead:
//
//    31    28 27          20 19                         0
//   +--------+--------------+----------------------------+
//   |  kind  |    flags     |            slot            |
//   +--------+--------------+----------------------------+
//
// Payload, little-endian:
//
//   offset size
//        0    4  call_sequence   tells two calls in one slot apart
//        4    2  credits         receive buffers granted to the peer
//        6    2  header_bytes
//        8    4  message_bytes   or, with kMessageOffer, the number of segments
//       12    4  detail          kOpen: method number; kData with kEnd, kReset:
//                                status code; kCredit: credits given back;
//                                kWindow: bytes
//       16    8  timeout_us      kOpen only; 0: no deadline
//            2+n path length and path    with kMethodDefinition only
//              n header
//              n message, or 24 bytes a segment; with kInParts, first the 8
//                bytes of the whole message's size
//              n attachment (the rest), or 24 bytes a segment
//
// Thread rule: pure functions and values.
#ifndef VERBENA_RDMA_TRANSPORT_FRAME_H_
#define VERBENA_RDMA_TRANSPORT_FRAME_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/base/optimization.h"
#include "absl/types/span.h"

namespace rdma {

enum class FrameKind : uint8_t {
  kOpen = 1,    // client: opens a call, with its first message
  kData = 2,    // a further frame of a call, either way
  kReset = 3,   // either way: the call is over; detail and header say why
  kDone = 4,    // the receiver of an offer has all of it, or wants none of it
  kCredit = 5,  // nothing but credits
  kGoAway = 6,  // server: opens no more calls on this connection
  kWindow = 7,  // a call's receiver takes so many more bytes (detail)
  kPart = 8,    // either way: further segments of a message in parts
};
inline constexpr uint8_t kMaxFrameKind = 8;

enum FrameFlag : uint8_t {
  kEnd = 1 << 0,               // the last frame of its direction
  kHasMessage = 1 << 1,        // a message, perhaps empty
  kMessageOffer = 1 << 2,      // the message is offered as segments
  kAttachmentOffer = 1 << 3,   // the attachment is offered as segments
  kMethodDefinition = 1 << 4,  // kOpen: gives the method's number its path
  kWantCredits = 1 << 5,       // the sender was held up for credits
  kNotRun = 1 << 6,            // kReset: no handler has seen the call;
                               // kGoAway: nor those opened after call_sequence
  kWantWindow = 1 << 6,        // kData: was held back by the call's window
  kWantAnswer = 1 << 7,        // kCredit: keepalive; asks for any frame
  kInParts = 1 << 7,           // kOpen, kData: kPart frames offer the rest
};

inline constexpr uint32_t kMaxSlot = (1u << 20) - 1;
inline constexpr size_t kTagBytes = 4;
inline constexpr size_t kFramePrefixBytes = 16;
inline constexpr size_t kOpenExtraBytes = 8;
inline constexpr size_t kSegmentBytes = 24;
// Of one frame; longer chains are gathered before they are offered.
inline constexpr size_t kMaxSegments = 32;
// Of a message in parts, all its frames together.
inline constexpr size_t kMaxSegmentsInParts = 1024;
inline constexpr size_t kTotalBytes = 8;
inline constexpr size_t kMaxPathBytes = 1024;

// What each direction of a call may have on its way to begin with, and what a
// frame takes of it besides its header, message and attachment.
inline constexpr int64_t kStreamWindow = 64 << 10;
inline constexpr int64_t kFrameWindow = 64;

// What one connection defines of methods, counted by either side: a server
// keeps the paths as long as the connection lives.
class MethodLimit {
 public:
  static constexpr uint32_t kMaxMethods = 4096;
  static constexpr size_t kMaxBytes = 128 << 10;  // of all paths

  bool HasRoom(std::string_view path) const {
    return methods_ < kMaxMethods && path.size() <= kMaxBytes - bytes_;
  }
  // REQUIRES: HasRoom(path).
  void Add(std::string_view path) {
    ++methods_;
    bytes_ += path.size();
  }

 private:
  uint32_t methods_ = 0;
  size_t bytes_ = 0;
};

// A piece of memory that the receiver may READ until it says done.
//   offset 0: address (8), 8: length (8), 16: rkey (4), 20: zero (4)
struct Segment {
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t rkey = 0;

  bool operator==(const Segment&) const = default;
};

// The fields of a frame in front of its header, message and attachment.
struct FrameFields {
  FrameKind kind = FrameKind::kCredit;
  uint8_t flags = 0;
  uint32_t slot = 0;
  uint32_t call_sequence = 0;
  uint16_t credits = 0;
  // At most 65,535. No neighbour of half a word: the two would be stored apart
  // and loaded as one, see rpc::kNoDeadline.
  uint32_t header_bytes = 0;
  uint32_t message_bytes = 0;  // or the number of the message's segments
  uint32_t detail = 0;
  uint64_t timeout_us = 0;
  std::string_view method_path;
};

uint32_t EncodeTag(const FrameFields& fields);

// Bytes that EncodePrefix writes, without a tag.
size_t PrefixBytes(const FrameFields& fields);
// Writes the prefix (and path). REQUIRES: PrefixBytes(fields) bytes at `out`,
// method_path within kMaxPathBytes.
void EncodePrefix(const FrameFields& fields, std::byte* out);

void EncodeSegment(const Segment& segment, std::byte* out);
// REQUIRES: kSegmentBytes at `in`.
Segment DecodeSegment(const std::byte* in);

// A frame taken apart; its views point into the received bytes.
struct FrameView {
  FrameFields fields;
  absl::Span<const std::byte> header;
  absl::Span<const std::byte> message;     // or segments
  absl::Span<const std::byte> attachment;  // or segments
  uint64_t message_total = 0;              // of a message in parts, else 0

  bool has(FrameFlag flag) const { return (fields.flags & flag) != 0; }
  bool has_offer() const {
    return (fields.flags & (kMessageOffer | kAttachmentOffer)) != 0;
  }
  // Of an open or data.
  bool in_parts() const {
    return (fields.kind == FrameKind::kOpen ||
            fields.kind == FrameKind::kData) &&
           has(kInParts);
  }
  // What the frame takes of its call's window.
  int64_t WindowBytes() const;
};

// Takes apart what a peer sent; trusts none of it. Returns null, or what is
// wrong with it.
const char* DecodeFrame(uint32_t tag, absl::Span<const std::byte> payload,
                        FrameView* view);
// The same for what most frames are: whole, plain, and of a call. False:
// DecodeFrame it.
bool DecodePlainFrame(uint32_t tag, absl::Span<const std::byte> payload,
                      FrameView* view);

// What a frame has beside its message, at most.
enum class Beside { kNothing, kAttachment };

// The only message of its direction, small, with nothing beside it: both frames
// of most calls, opens and data. Or with no more beside it than an attachment.
// A view: fields are read where they lie, each time, so that nobody else may
// write to `payload`, as no peer may to a receive buffer once it is complete
// (MemoryUse::kLocal).
template <FrameKind kKind, Beside kBeside = Beside::kNothing>
class OnlyMessage {
 public:
  // In front of the message, which is in front of the attachment.
  static constexpr size_t kFrontBytes =
      kFramePrefixBytes + (kKind == FrameKind::kOpen ? kOpenExtraBytes : 0);

  OnlyMessage(uint32_t tag, absl::Span<const std::byte> payload)
      : tag_(tag), payload_(payload) {}

  // False: it is none; DecodePlainFrame or DecodeFrame it. Only for one that
  // is may anything else be called.
  bool is_one() const;

  uint32_t slot() const { return tag_ & kMaxSlot; }
  uint32_t call_sequence() const;
  uint32_t credits() const;
  uint32_t detail() const;
  uint64_t timeout_us() const;
  size_t message_bytes() const;
  size_t attachment_bytes() const {
    return payload_.size() - kFrontBytes - message_bytes();
  }

 private:
  static_assert(kKind == FrameKind::kOpen || kKind == FrameKind::kData);
  static constexpr bool kOpens = kKind == FrameKind::kOpen;

  uint32_t tag_;
  absl::Span<const std::byte> payload_;
};

// ---- Implementation, of what each small call writes.

// What an open says where so much is left.
inline uint64_t TimeoutUs(int64_t left_ns) {
  return static_cast<uint64_t>(std::max<int64_t>(left_ns / 1000, 1));
}

namespace frame_internal {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian, and so are the machines with RDMA");
static_assert(kFramePrefixBytes == 16 && kOpenExtraBytes == 8);

template <typename T>
void Store(std::byte* out, T value) {
  std::memcpy(out, &value, sizeof(value));
}

template <typename T>
T Load(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

}  // namespace frame_internal

inline uint32_t EncodeTag(const FrameFields& fields) {
  return static_cast<uint32_t>(fields.kind) << 28 |
         static_cast<uint32_t>(fields.flags) << 20 | fields.slot;
}

inline size_t PrefixBytes(const FrameFields& fields) {
  size_t bytes = kFramePrefixBytes;
  if (fields.kind == FrameKind::kOpen) bytes += kOpenExtraBytes;
  if ((fields.flags & kMethodDefinition) != 0) {
    bytes += 2 + fields.method_path.size();
  }
  return bytes;
}

inline void EncodePrefix(const FrameFields& fields, std::byte* out) {
  using frame_internal::Store;
  // In one store: whoever sends it loads these bytes at once, in one load.
  using Words [[gnu::vector_size(16)]] = uint64_t;
  Store(out, Words{fields.call_sequence | uint64_t{fields.credits} << 32 |
                       uint64_t{fields.header_bytes} << 48,
                   fields.message_bytes | uint64_t{fields.detail} << 32});
  out += kFramePrefixBytes;
  if (fields.kind == FrameKind::kOpen) {
    Store(out, fields.timeout_us);
    out += kOpenExtraBytes;
  }
  if ((fields.flags & kMethodDefinition) != 0) {
    Store(out, static_cast<uint16_t>(fields.method_path.size()));
    std::memcpy(out + 2, fields.method_path.data(), fields.method_path.size());
  }
}

inline bool DecodePlainFrame(uint32_t tag, absl::Span<const std::byte> payload,
                             FrameView* view) {
  using frame_internal::Load;
  const auto kind = static_cast<FrameKind>(tag >> 28);
  const auto flags = static_cast<uint8_t>(tag >> 20);
  size_t front_bytes = kFramePrefixBytes;
  if (kind == FrameKind::kOpen) {
    front_bytes += kOpenExtraBytes;
  } else if (kind != FrameKind::kData) {
    return false;
  }
  if ((flags & ~(kEnd | kHasMessage | kWantCredits)) != 0 ||
      payload.size() < front_bytes) {
    return false;
  }
  const std::byte* const in = payload.data();
  FrameFields& fields = view->fields;
  fields.kind = kind;
  fields.flags = flags;
  fields.slot = tag & kMaxSlot;
  fields.call_sequence = Load<uint32_t>(in);
  fields.credits = Load<uint16_t>(in + 4);
  fields.header_bytes = Load<uint16_t>(in + 6);
  fields.message_bytes = Load<uint32_t>(in + 8);
  fields.detail = Load<uint32_t>(in + 12);
  fields.timeout_us =
      kind == FrameKind::kOpen ? Load<uint64_t>(in + kFramePrefixBytes) : 0;
  fields.method_path = {};
  const size_t rest = payload.size() - front_bytes;
  if (uint64_t{fields.header_bytes} + fields.message_bytes > rest ||
      ((flags & kHasMessage) == 0 && fields.message_bytes != 0)) {
    return false;
  }
  view->header = {in + front_bytes, fields.header_bytes};
  view->message = {view->header.end(), fields.message_bytes};
  view->attachment = {view->message.end(),
                      rest - fields.header_bytes - fields.message_bytes};
  return true;
}

template <FrameKind kKind, Beside kBeside>
inline bool OnlyMessage<kKind, kBeside>::is_one() const {
  using frame_internal::Load;
  constexpr uint32_t kExpected =
      static_cast<uint32_t>(kKind) << 8 | kEnd | kHasMessage;
  const std::byte* const in = payload_.data();
  if (ABSL_PREDICT_FALSE(tag_ >> 20 != kExpected) ||
      ABSL_PREDICT_FALSE(payload_.size() < kFrontBytes) ||
      ABSL_PREDICT_FALSE(Load<uint16_t>(in + 6) != 0)) {
    return false;
  }
  const size_t rest = payload_.size() - kFrontBytes;
  const uint32_t bytes = Load<uint32_t>(in + 8);
  return ABSL_PREDICT_TRUE(kBeside == Beside::kNothing ? bytes == rest
                                                       : bytes <= rest);
}

template <FrameKind kKind, Beside kBeside>
inline uint32_t OnlyMessage<kKind, kBeside>::call_sequence() const {
  return frame_internal::Load<uint32_t>(payload_.data());
}

template <FrameKind kKind, Beside kBeside>
inline uint32_t OnlyMessage<kKind, kBeside>::credits() const {
  return frame_internal::Load<uint16_t>(payload_.data() + 4);
}

template <FrameKind kKind, Beside kBeside>
inline size_t OnlyMessage<kKind, kBeside>::message_bytes() const {
  if constexpr (kBeside == Beside::kNothing) {
    return payload_.size() - kFrontBytes;
  }
  return frame_internal::Load<uint32_t>(payload_.data() + 8);
}

template <FrameKind kKind, Beside kBeside>
inline uint32_t OnlyMessage<kKind, kBeside>::detail() const {
  return frame_internal::Load<uint32_t>(payload_.data() + 12);
}

template <FrameKind kKind, Beside kBeside>
inline uint64_t OnlyMessage<kKind, kBeside>::timeout_us() const {
  if constexpr (!kOpens) return 0;
  return frame_internal::Load<uint64_t>(payload_.data() + kFramePrefixBytes);
}

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_FRAME_H_
