#include "rpc/internal/arriving_parser.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "google/protobuf/wire_format_lite.h"
#include "rpc/internal/resize_uninitialized.h"

namespace rpc::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageLite;
using google::protobuf::Reflection;
using google::protobuf::internal::WireFormatLite;

// Messages within messages that are looked into; protobuf's own limit is 100,
// and counts anew in each.
constexpr int kMostDepth = 8;

// The string of a field, to be written anew: a further one, where it is
// repeated. It keeps the memory that it has, for which protobuf has no function
// but of each message's own class. REQUIRES: `message` is on no arena, where
// strings may have memory of their own kind.
std::string& MutableString(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::string unused;  // of fields that are no std::string, as none here is
  if (field.is_repeated()) {
    reflection.AddString(&message, &field, std::string());
    const int last = reflection.FieldSize(message, &field) - 1;
    return const_cast<std::string&>(
        reflection.GetRepeatedStringReference(message, &field, last, &unused));
  }
  // Not the default any more, which all messages share.
  reflection.SetString(&message, &field, std::string(1, '\0'));
  return const_cast<std::string&>(
      reflection.GetStringReference(message, &field, &unused));
}

bool MustBeUtf8(const FieldDescriptor& field) {
  return field.type() == FieldDescriptor::TYPE_STRING &&
         field.file()->syntax() == FileDescriptor::SYNTAX_PROTO3;
}

// As long as protobuf takes tags and lengths, and values.
constexpr size_t kMostTagBytes = 5;
constexpr size_t kMostVarintBytes = 10;

// False where it goes on behind the bytes, or is longer than it may be.
bool TakeVarint(absl::Span<const std::byte>* bytes, size_t most_bytes,
                uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes->size() && i < most_bytes; ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

// What is in front of a field's value, where that has a length, or the whole of
// a varint.
struct FieldHead {
  int number = 0;
  bool is_delimited = false;
  uint64_t bytes = 0;  // of what follows
};

// False where there is less of it than that, or no such field.
bool TakeHead(absl::Span<const std::byte>* bytes, FieldHead* head) {
  uint64_t tag;
  if (!TakeVarint(bytes, kMostTagBytes, &tag) || tag > UINT32_MAX) return false;
  head->number = WireFormatLite::GetTagFieldNumber(static_cast<uint32_t>(tag));
  switch (WireFormatLite::GetTagWireType(static_cast<uint32_t>(tag))) {
    case WireFormatLite::WIRETYPE_VARINT: {
      uint64_t value;
      return TakeVarint(bytes, kMostVarintBytes, &value);
    }
    case WireFormatLite::WIRETYPE_FIXED64:
      head->bytes = 8;
      return true;
    case WireFormatLite::WIRETYPE_FIXED32:
      head->bytes = 4;
      return true;
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      head->is_delimited = true;
      return TakeVarint(bytes, kMostTagBytes, &head->bytes);
    default:
      return false;
  }
}

}  // namespace

absl::Span<const std::byte> ArrivingParser::Stream::NextPiece() {
  if (!next_.empty()) return std::exchange(next_, {});
  const absl::Span<const std::byte> piece = arriving_.Next();
  is_cut_off_ =
      piece.empty() && static_cast<uint64_t>(ByteCount()) < total_bytes();
  return piece;
}

bool ArrivingParser::Stream::Join() {
  const size_t left_bytes = left().size();
  // They may be in joint_ already.
  std::copy_n(left().data(), left_bytes, joint_);
  const absl::Span<const std::byte> piece = NextPiece();
  const size_t joined = std::min(kMostJoined, piece.size());
  std::copy_n(piece.data(), joined, joint_ + left_bytes);
  Replace({joint_, left_bytes + joined}, 0);
  next_ = piece.subspan(joined);
  return !piece.empty();
}

bool ArrivingParser::Stream::ReadInto(absl::Span<std::byte> to) {
  absl::Span<const std::byte> here = left();
  const size_t all_bytes = to.size();
  for (absl::Span<const std::byte>* const piece : {&here, &next_}) {
    const size_t bytes = std::min(piece->size(), to.size());
    std::copy_n(piece->data(), bytes, to.data());
    piece->remove_prefix(bytes);
    to.remove_prefix(bytes);
  }
  Replace(here, all_bytes);
  is_cut_off_ = !to.empty() && !arriving_.ReadInto(to);
  return !is_cut_off_;
}

bool ArrivingParser::Parse(MessageLite& message) {
  const auto total = static_cast<int64_t>(stream_.total_bytes());
  message.Clear();
  const bool in_place =
      stream_.can_read_into() && message.GetArena() == nullptr;
  auto* const full = in_place ? dynamic_cast<Message*>(&message) : nullptr;
  const bool merged =
      full != nullptr ? Merge(*full, total, 0) : MergeAsUsual(message, total);
  return merged && message.IsInitializedWithErrors();
}

bool ArrivingParser::MergeAsUsual(MessageLite& message, int64_t end) {
  const int64_t bytes = end - stream_.ByteCount();
  if (bytes == 0) return true;
  return message.MergePartialFromBoundedZeroCopyStream(&stream_,
                                                       static_cast<int>(bytes));
}

bool ArrivingParser::Merge(Message& message, int64_t end, int depth) {
  while (stream_.ByteCount() < end) {
    const LongField found = FindLongField(*message.GetDescriptor(), end);
    if (!MergeAsUsual(message, found.begin)) return false;
    if (found.field == nullptr) continue;
    const FieldDescriptor& field = *found.field;
    if (!stream_.Skip(static_cast<int>(found.content - found.begin))) {
      return false;
    }
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      if (!ReadString(message, field, static_cast<size_t>(found.bytes))) {
        return false;
      }
      continue;
    }
    const Reflection& reflection = *message.GetReflection();
    Message* const inner = field.is_repeated()
                               ? reflection.AddMessage(&message, &field)
                               : reflection.MutableMessage(&message, &field);
    const int64_t inner_end = found.content + found.bytes;
    const bool merged = depth < kMostDepth ? Merge(*inner, inner_end, depth + 1)
                                           : MergeAsUsual(*inner, inner_end);
    if (!merged) return false;
  }
  return true;
}

// Goes from field to field of what there is, as it lies.
ArrivingParser::LongField ArrivingParser::FindLongField(const Descriptor& type,
                                                        int64_t end) {
  const int64_t begin = stream_.ByteCount();
  const auto peek = [&] {
    const absl::Span<const std::byte> piece = stream_.Peek();
    return piece.first(
        std::min(piece.size(), static_cast<size_t>(end - begin)));
  };
  absl::Span<const std::byte> piece = peek();
  absl::Span<const std::byte> rest = piece;
  const auto place = [&] {
    return begin + static_cast<int64_t>(piece.size() - rest.size());
  };
  for (;;) {
    const int64_t field_begin = place();
    const size_t left = rest.size();
    FieldHead head;
    if (!TakeHead(&rest, &head)) {
      // Protobuf says what is wrong with a message.
      if (left > Stream::kMostJoined) return {.begin = end};
      // It is cut, perhaps.
      if (field_begin > begin) return {.begin = field_begin};
      if (begin + static_cast<int64_t>(left) == end || !stream_.Join()) {
        return {.begin = end};
      }
      piece = rest = peek();
      continue;
    }
    const int64_t content = place();
    if (head.bytes > static_cast<uint64_t>(end - content)) {
      return {.begin = end};
    }
    if (head.bytes < rest.size()) {
      rest.remove_prefix(head.bytes);
      continue;
    }
    // It reaches to the end of what there is, or beyond.
    const auto bytes = static_cast<int64_t>(head.bytes);
    const bool is_long =
        head.is_delimited && head.bytes - rest.size() >= fewest_bytes_in_place_;
    const FieldDescriptor* const field =
        is_long ? type.FindFieldByNumber(head.number) : nullptr;
    if (field == nullptr || field->is_map() ||
        (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
         field->type() != FieldDescriptor::TYPE_MESSAGE)) {
      return {.begin = content + bytes};
    }
    return {field, field_begin, content, bytes};
  }
}

bool ArrivingParser::ReadString(Message& message, const FieldDescriptor& field,
                                size_t bytes) {
  std::string& string = MutableString(message, field);
  ResizeUninitialized(string, bytes);
  if (!stream_.ReadInto(
          absl::MakeSpan(reinterpret_cast<std::byte*>(string.data()), bytes))) {
    string.clear();
    return false;
  }
  return !MustBeUtf8(field) ||
         WireFormatLite::VerifyUtf8String(
             string.data(), static_cast<int>(bytes), WireFormatLite::PARSE,
             field.full_name().c_str());
}

}  // namespace rpc::internal
