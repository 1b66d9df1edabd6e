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

bool ArrivingParser::Stream::Next(const void** data, int* size) {
  const absl::Span<const std::byte> piece = Peek();
  if (piece.empty()) return false;
  *data = piece.data();
  *size = static_cast<int>(piece.size());
  left_.remove_prefix(piece.size());
  position_ += *size;
  return true;
}

void ArrivingParser::Stream::BackUp(int count) {
  // What Next gave last lies just before what is left.
  left_ = {left_.data() - count, left_.size() + static_cast<size_t>(count)};
  position_ -= count;
}

bool ArrivingParser::Stream::Skip(int count) {
  const void* data;
  int size;
  while (count > 0) {
    if (!Next(&data, &size)) return false;
    if (size > count) BackUp(size - count);
    count -= std::min(size, count);
  }
  return true;
}

absl::Span<const std::byte> ArrivingParser::Stream::Peek() {
  if (position_ == end_) return {};
  if (left_.empty()) left_ = std::exchange(next_, {});
  if (left_.empty()) {
    left_ = arriving_.Next();
    is_cut_off_ = left_.empty();
  }
  return left_.first(
      std::min(left_.size(), static_cast<size_t>(end_ - position_)));
}

bool ArrivingParser::Stream::Join() {
  const size_t left = left_.size();
  if (static_cast<size_t>(end_ - position_) <= left) return false;
  if (left_.data() != joint_) std::copy_n(left_.data(), left, joint_);
  const absl::Span<const std::byte> piece =
      next_.empty() ? arriving_.Next() : next_;
  is_cut_off_ = piece.empty();
  const size_t joined = std::min(kMostJoined, piece.size());
  std::copy_n(piece.data(), joined, joint_ + left);
  left_ = {joint_, left + joined};
  next_ = piece.subspan(joined);
  return !is_cut_off_;
}

bool ArrivingParser::Stream::ReadInto(absl::Span<std::byte> to) {
  position_ += static_cast<int64_t>(to.size());
  for (absl::Span<const std::byte>* const here : {&left_, &next_}) {
    const size_t bytes = std::min(here->size(), to.size());
    std::copy_n(here->data(), bytes, to.data());
    here->remove_prefix(bytes);
    to.remove_prefix(bytes);
  }
  if (to.empty() || arriving_.ReadInto(to)) return true;
  is_cut_off_ = true;
  return false;
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
  const int64_t outer_end = stream_.end();
  stream_.set_end(end);
  const bool merged = message.MergePartialFromBoundedZeroCopyStream(
      &stream_, static_cast<int>(bytes));
  stream_.set_end(outer_end);
  return merged;
}

bool ArrivingParser::Merge(Message& message, int64_t end, int depth) {
  stream_.set_end(end);
  while (stream_.ByteCount() < end) {
    const LongField found = FindLongField(*message.GetDescriptor());
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
    stream_.set_end(end);
  }
  return true;
}

// Goes from field to field of what there is, as it lies.
ArrivingParser::LongField ArrivingParser::FindLongField(
    const Descriptor& type) {
  const int64_t begin = stream_.ByteCount();
  absl::Span<const std::byte> piece = stream_.Peek();
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
      if (left > Stream::kMostJoined) return {.begin = stream_.end()};
      // It is cut, perhaps.
      if (field_begin > begin) return {.begin = field_begin};
      if (!stream_.Join()) return {.begin = stream_.end()};
      piece = rest = stream_.Peek();
      continue;
    }
    const int64_t content = place();
    if (head.bytes > static_cast<uint64_t>(stream_.end() - content)) {
      return {.begin = stream_.end()};
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
