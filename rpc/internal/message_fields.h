// Messages that have but numbers, texts and bytes, written and parsed field by
// field. Used by generated code, which says for each such type
//
//   template <>
//   struct FieldsOf<Payload> {
//     static void Write(const Payload& message, FieldWriter& writer) {
//       if (IsSet(message.data())) writer.Bytes(1, message.data());
//     }
//     static void Read(uint32_t tag, FieldReader& reader, Payload& message) {
//       switch (tag) {
//         case 10: return reader.Saw(0).Bytes(message.mutable_data());
//         default: return reader.GiveUp();
//       }
//     }
//     static constexpr uint64_t kAll = 1;
//     static void ClearUnseen(uint64_t seen, Payload& message) {
//       if ((seen & 1) == 0) message.clear_data();
//     }
//   };
//
// The bytes, and the messages, are the same as protobuf's own functions make.
// Those prepare for all that a message can have, as they write its size ahead,
// find limits, keep what they do not know, and check what is required: most of
// what a small message takes. Here whatever is not usual is given up, and left
// to protobuf from the beginning: fields that the type does not have, texts
// that are not UTF-8, bytes that are no message, and what is too large. Long
// texts and bytes are copied by memory/copy_bytes.h.
//
// Source: protobuf.dev/programming-guides/encoding; parse_context.h and
// wire_format_lite.h of protobuf 3.21 for what is not canonical there.
//
// Thread rule: no state but in the readers and writers, of one thread each; the
// messages belong to the caller.
#ifndef VERBENA_RPC_INTERNAL_MESSAGE_FIELDS_H_
#define VERBENA_RPC_INTERNAL_MESSAGE_FIELDS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "google/protobuf/generated_message_util.h"
#include "google/protobuf/message.h"
#include "google/protobuf/message_lite.h"
#include "google/protobuf/metadata_lite.h"
#include "google/protobuf/stubs/casts.h"
#include "google/protobuf/stubs/common.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/wire_format_lite.h"
#include "memory/copy_bytes.h"
#include "rpc/internal/message_functions.h"
#include "rpc/internal/resize_uninitialized.h"

namespace rpc::internal {

static_assert(std::endian::native == std::endian::little,
              "fixed-width numbers are little-endian");

// Whether a field without presence is to be written. Of a float, which -0.0 is.
inline bool IsSet(const std::string& value) { return !value.empty(); }
inline bool IsSet(float value) { return std::bit_cast<uint32_t>(value) != 0; }
inline bool IsSet(double value) { return std::bit_cast<uint64_t>(value) != 0; }
template <class Number>
requires std::is_integral_v<Number> || std::is_enum_v<Number>
inline bool IsSet(Number value) { return value != Number{}; }

// Whether it has fields that its type does not have.
class UnknownFields : google::protobuf::MessageLite {
 public:
  template <class Message>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static bool AreIn(const Message& message) {
    const google::protobuf::internal::InternalMetadata& metadata =
        message.*(&UnknownFields::_internal_metadata_);
    return ABSL_PREDICT_FALSE(metadata.have_unknown_fields()) &&
           !AreEmpty<std::is_base_of_v<google::protobuf::Message, Message>>(
               metadata);
  }

 private:
  // There have been some: of the full runtime, or of the lite one.
  template <bool kFull>
  ABSL_ATTRIBUTE_NOINLINE static bool AreEmpty(
      const google::protobuf::internal::InternalMetadata& metadata) {
    if constexpr (kFull) {
      using google::protobuf::UnknownFieldSet;
      return metadata
          .unknown_fields<UnknownFieldSet>(&UnknownFieldSet::default_instance)
          .empty();
    } else {
      return metadata
          .unknown_fields<std::string>(
              &google::protobuf::internal::GetEmptyString)
          .empty();
    }
  }
};

// Writes fields of numbers up to kMaxNumber, in their order.
class FieldWriter {
 public:
  // Whose tag is two bytes.
  static constexpr int kMaxNumber = 2047;
  // A tag, and a varint: no field is longer, but for a text's or bytes'. So
  // much room is wanted for each.
  static constexpr size_t kMostOfANumber = 2 + 10;

  FieldWriter(uint8_t* target, size_t max_bytes)
      : begin_(target), at_(target), end_(target + max_bytes) {}

  ABSL_ATTRIBUTE_ALWAYS_INLINE void Int32(int number, int32_t value) {
    Int64(number, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Int64(int number, int64_t value) {
    Uint64(number, static_cast<uint64_t>(value));
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Uint32(int number, uint32_t value) {
    Uint64(number, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Uint64(int number, uint64_t value) {
    if (!HasRoom(kMostOfANumber)) return;
    PutTag(number, kVarint);
    PutVarint(value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Sint32(int number, int32_t value) {
    Uint32(number, WireFormatLite::ZigZagEncode32(value));
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Sint64(int number, int64_t value) {
    Uint64(number, WireFormatLite::ZigZagEncode64(value));
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Bool(int number, bool value) {
    Uint64(number, value ? 1 : 0);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Enum(int number, int32_t value) {
    Int64(number, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Fixed32(int number, uint32_t value) {
    PutFixed(number, kFixed32, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Sfixed32(int number, int32_t value) {
    PutFixed(number, kFixed32, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Float(int number, float value) {
    PutFixed(number, kFixed32, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Fixed64(int number, uint64_t value) {
    PutFixed(number, kFixed64, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Sfixed64(int number, int64_t value) {
    PutFixed(number, kFixed64, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Double(int number, double value) {
    PutFixed(number, kFixed64, value);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Bytes(int number,
                                          const std::string& value) {
    const size_t size = value.size();
    if (!HasRoom(kMostOfANumber + size)) return;
    PutTag(number, kLengthDelimited);
    PutVarint(size);
    memory::CopyBytes(reinterpret_cast<std::byte*>(at_),
                      reinterpret_cast<const std::byte*>(value.data()), size);
    at_ += size;
  }
  // What is not UTF-8, protobuf sends, and complains of.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void String(int number,
                                           const std::string& value) {
    if (!HasRoom(value.size()) ||
        !google::protobuf::internal::IsStructurallyValidUTF8(value)) {
      return GiveUp();
    }
    Bytes(number, value);
  }

  // It has not written all: there was no room, or it was not usual.
  bool has_given_up() const { return at_ == end_; }
  // REQUIRES: !has_given_up().
  size_t size() const { return static_cast<size_t>(at_ - begin_); }

 private:
  using WireFormatLite = google::protobuf::internal::WireFormatLite;

  static constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
  static constexpr auto kFixed64 = WireFormatLite::WIRETYPE_FIXED64;
  static constexpr auto kLengthDelimited =
      WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  static constexpr auto kFixed32 = WireFormatLite::WIRETYPE_FIXED32;

  // Whoever gave up has no room for anything.
  void GiveUp() { at_ = end_; }
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool HasRoom(size_t bytes) {
    if (ABSL_PREDICT_TRUE(static_cast<size_t>(end_ - at_) > bytes)) return true;
    GiveUp();
    return false;
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PutTag(int number,
                                           WireFormatLite::WireType wire_type) {
    const uint32_t tag = WireFormatLite::MakeTag(number, wire_type);
    if (tag < 0x80) {
      *at_++ = static_cast<uint8_t>(tag);
    } else {
      *at_++ = static_cast<uint8_t>(tag | 0x80);
      *at_++ = static_cast<uint8_t>(tag >> 7);
    }
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PutVarint(uint64_t value) {
    while (ABSL_PREDICT_FALSE(value >= 0x80)) {
      *at_++ = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    *at_++ = static_cast<uint8_t>(value);
  }
  template <class Number>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PutFixed(int number,
                                             WireFormatLite::WireType wire_type,
                                             Number value) {
    if (!HasRoom(kMostOfANumber)) return;
    PutTag(number, wire_type);
    std::memcpy(at_, &value, sizeof(value));
    at_ += sizeof(value);
  }

  uint8_t* const begin_;
  uint8_t* at_;
  uint8_t* const end_;
};

// Reads fields in any order. Once it has given up, it is done, and what its
// functions return means nothing.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes)
      : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool done() const { return at_ == end_; }
  bool has_given_up() const { return has_given_up_; }
  void GiveUp() {
    has_given_up_ = true;
    at_ = end_;
  }

  // Of what comes next. Of one that is cut off, or has a third byte, more than
  // any field's. REQUIRES: !done().
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t Tag() {
    const auto first = static_cast<uint8_t>(*at_++);
    if (ABSL_PREDICT_TRUE(first < 0x80)) return first;
    const uint8_t second = at_ == end_ ? 0x80 : static_cast<uint8_t>(*at_++);
    return (first & 0x7fu) | (uint32_t{second} << 7);
  }

  // The field of this index among the type's, below 64, comes next. Those that
  // are not seen keep what the message had.
  ABSL_ATTRIBUTE_ALWAYS_INLINE FieldReader& Saw(int index) {
    seen_ |= uint64_t{1} << index;
    return *this;
  }
  uint64_t seen() const { return seen_; }

  // Of a varint, what does not fit is cut off, as protobuf does.
  ABSL_ATTRIBUTE_ALWAYS_INLINE int32_t Int32() {
    return static_cast<int32_t>(Uint64());
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE int64_t Int64() {
    return static_cast<int64_t>(Uint64());
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t Uint32() {
    return static_cast<uint32_t>(Uint64());
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint64_t Uint64() {
    uint64_t value;
    at_ = TakeVarint(at_, end_, kMostOfAVarint, &value);
    if (ABSL_PREDICT_FALSE(at_ == nullptr)) GiveUp();
    return value;
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE int32_t Sint32() {
    return WireFormatLite::ZigZagDecode32(Uint32());
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE int64_t Sint64() {
    return WireFormatLite::ZigZagDecode64(Uint64());
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Bool() { return Uint64() != 0; }
  // Of a type that takes any.
  ABSL_ATTRIBUTE_ALWAYS_INLINE int32_t Enum() { return Int32(); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t Fixed32() { return Fixed<uint32_t>(); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE int32_t Sfixed32() { return Fixed<int32_t>(); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE float Float() { return Fixed<float>(); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint64_t Fixed64() { return Fixed<uint64_t>(); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE int64_t Sfixed64() { return Fixed<int64_t>(); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE double Double() { return Fixed<double>(); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Bytes(std::string* value) {
    at_ = TakeBytes(at_, end_, value);
    if (ABSL_PREDICT_FALSE(at_ == nullptr)) GiveUp();
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void String(std::string* value) {
    Bytes(value);
    if (ABSL_PREDICT_FALSE(
            !google::protobuf::internal::IsStructurallyValidUTF8(*value))) {
      GiveUp();
    }
  }

 private:
  using WireFormatLite = google::protobuf::internal::WireFormatLite;

  static constexpr int kMostOfAVarint = 10;  // bytes
  static constexpr int kMostOfASize = 5;

  // What follows returns where it ends; null where it does not.

  // In no more than `most` bytes.
  ABSL_ATTRIBUTE_ALWAYS_INLINE static const char* TakeVarint(const char* at,
                                                             const char* end,
                                                             int most,
                                                             uint64_t* value) {
    if (ABSL_PREDICT_TRUE(at != end && static_cast<uint8_t>(*at) < 0x80)) {
      *value = static_cast<uint8_t>(*at);
      return at + 1;
    }
    return TakeLongVarint(at, end, most, value);
  }
  ABSL_ATTRIBUTE_NOINLINE static const char* TakeLongVarint(const char* at,
                                                            const char* end,
                                                            int most,
                                                            uint64_t* value) {
    *value = 0;
    for (int i = 0; i < most && at != end; ++i) {
      const auto byte = static_cast<uint8_t>(*at++);
      *value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte < 0x80) return at;
    }
    return nullptr;
  }
  // Of each text's and bytes' field the same code: assign is much of it.
  ABSL_ATTRIBUTE_NOINLINE static const char* TakeBytes(const char* at,
                                                       const char* end,
                                                       std::string* value) {
    uint64_t size;
    at = TakeVarint(at, end, kMostOfASize, &size);
    if (ABSL_PREDICT_FALSE(at == nullptr ||
                           size > static_cast<size_t>(end - at))) {
      return nullptr;
    }
    if (ABSL_PREDICT_TRUE(size < memory::kLeastVectorBytes)) {
      value->assign(at, memory::Unbounded(static_cast<size_t>(size)));
    } else {
      AssignLong(at, static_cast<size_t>(size), value);
    }
    return at + size;
  }
  ABSL_ATTRIBUTE_NOINLINE static void AssignLong(const char* from, size_t size,
                                                 std::string* value) {
    ResizeUninitialized(*value, size);
    memory::CopyLong(reinterpret_cast<std::byte*>(value->data()),
                     reinterpret_cast<const std::byte*>(from), size);
  }

  template <class Number>
  ABSL_ATTRIBUTE_ALWAYS_INLINE Number Fixed() {
    Number value = 0;
    if (ABSL_PREDICT_FALSE(static_cast<size_t>(end_ - at_) < sizeof(value))) {
      GiveUp();
      return value;
    }
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }

  const char* at_;
  const char* const end_;
  uint64_t seen_ = 0;
  bool has_given_up_ = false;
};

// Without specialisation: protobuf's own functions.
template <class Message>
struct FieldsOf;

template <class Message>
concept HasFieldsOf = requires {
  sizeof(FieldsOf<Message>);
};

// Out of the way.
ABSL_ATTRIBUTE_NOINLINE inline bool FillUnusual(
    const google::protobuf::MessageLite& message, size_t size, uint8_t* target,
    size_t capacity) {
  return FillByProtobuf(message, size, target, capacity);
}
ABSL_ATTRIBUTE_NOINLINE inline size_t WriteUnusual(
    const google::protobuf::MessageLite& message, uint8_t* target,
    size_t max_bytes) {
  return WriteByProtobuf(message, target, max_bytes);
}
ABSL_ATTRIBUTE_NOINLINE inline bool ParseUnusual(
    std::string_view bytes, google::protobuf::MessageLite* message) {
  return ParseByProtobuf(bytes, message);
}

template <class Message>
size_t WriteByFields(const google::protobuf::MessageLite& message,
                     uint8_t* target, size_t max_bytes) {
  const auto& written =
      google::protobuf::internal::down_cast<const Message&>(message);
  FieldWriter writer(target, max_bytes);
  if (ABSL_PREDICT_TRUE(!UnknownFields::AreIn(written))) {
    FieldsOf<Message>::Write(written, writer);
    if (ABSL_PREDICT_TRUE(!writer.has_given_up())) return writer.size();
  }
  return WriteUnusual(message, target, max_bytes);
}

template <class Message>
bool FillByFields(const google::protobuf::MessageLite& message, size_t size,
                  uint8_t* target, size_t capacity) {
  const auto& written =
      google::protobuf::internal::down_cast<const Message&>(message);
  // With less room the last field would be given up, after the others.
  if (ABSL_PREDICT_TRUE(capacity - size > FieldWriter::kMostOfANumber &&
                        !UnknownFields::AreIn(written))) {
    FieldWriter writer(target, capacity);
    FieldsOf<Message>::Write(written, writer);
    if (ABSL_PREDICT_TRUE(!writer.has_given_up())) return writer.size() == size;
  }
  return FillUnusual(message, size, target, capacity);
}

template <class Message>
bool ParseByFields(std::string_view bytes,
                   google::protobuf::MessageLite* message) {
  auto& parsed = google::protobuf::internal::down_cast<Message&>(*message);
  if (ABSL_PREDICT_FALSE(UnknownFields::AreIn(parsed))) parsed.Clear();
  FieldReader reader(bytes);
  while (!reader.done()) {
    FieldsOf<Message>::Read(reader.Tag(), reader, parsed);
  }
  if (ABSL_PREDICT_FALSE(reader.has_given_up())) {
    return ParseUnusual(bytes, message);
  }
  if (reader.seen() != FieldsOf<Message>::kAll) {
    FieldsOf<Message>::ClearUnseen(reader.seen(), parsed);
  }
  return true;
}

template <class Message>
constexpr MessageFunctions FunctionsOf() {
  if constexpr (HasFieldsOf<Message>) {
    return {&WriteByFields<Message>, &FillByFields<Message>,
            &ParseByFields<Message>};
  } else {
    return kProtobufsOwn;
  }
}

// For generated code: of a method of these types.
template <class Request, class Response>
inline constexpr MethodMessages kMessagesOf = {FunctionsOf<Request>(),
                                               FunctionsOf<Response>()};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_MESSAGE_FIELDS_H_
