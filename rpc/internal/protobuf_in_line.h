// What MessageLite's ParseFromArray and SerializeWithCachedSizesToArray do, to
// the letter, but in line: on the way of a small message their calls within
// libprotobuf, and what those hand to each other, are half of the work.
//
// They are made of what protoc's generated code is made of, too, and so is
// compiled against: message_lite.cc of protobuf 3.21 has the originals.
//
// Thread rule: no state; the messages belong to the caller.
#ifndef VERBENA_RPC_INTERNAL_PROTOBUF_IN_LINE_H_
#define VERBENA_RPC_INTERNAL_PROTOBUF_IN_LINE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/base/attributes.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/message_lite.h"
#include "google/protobuf/parse_context.h"

namespace rpc::internal {

// What is in `message` is gone. False where `bytes` are not one message of its
// type, all of them, with every required field (of whose lack protobuf logs).
// REQUIRES: `bytes` are not null, and no more than INT_MAX.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ParseInLine(
    std::string_view bytes, google::protobuf::MessageLite* message) {
  using google::protobuf::internal::ParseContext;
  using google::protobuf::io::CodedInputStream;
  message->Clear();
  const char* at;
  ParseContext context(
      CodedInputStream::GetDefaultRecursionLimit(),
      /*aliasing=*/false, &at,
      google::protobuf::StringPiece(bytes.data(), bytes.size()));
  at = message->_InternalParse(at, &context);
  // It may also have ended at a zero, or at the end of a group.
  return at != nullptr && context.EndedAtLimit() &&
         message->IsInitializedWithErrors();
}

// How far protobuf may write beyond the end of what it is given, if `message`
// became larger meanwhile; what follows is in memory of its own.
inline constexpr size_t kSlopBytes =
    google::protobuf::io::EpsCopyOutputStream::kSlopBytes;

// Returns where the message ends. `size`: ByteSizeLong's, of just before, and
// no more than INT_MAX.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline uint8_t* SerializeInLine(
    const google::protobuf::MessageLite& message, size_t size,
    uint8_t* target) {
  using google::protobuf::io::CodedOutputStream;
  google::protobuf::io::EpsCopyOutputStream stream(
      target, static_cast<int>(size),
      CodedOutputStream::IsDefaultSerializationDeterministic());
  return message._InternalSerialize(target, &stream);
}

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_PROTOBUF_IN_LINE_H_
