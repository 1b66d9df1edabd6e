// What writes a type's messages, and what parses them: protobuf's own
// functions, or what is generated for the fields of the type
// (message_fields.h).
//
//   size_t size = functions.write(message, memory, max_bytes);
//   if (size > max_bytes) ...  // nothing is written, or kChangedMeanwhile;
//   if (!functions.fill(message, size, other, capacity)) ...  // it has changed
//
// Thread rule: no state; the messages belong to the caller.
#ifndef VERBENA_RPC_INTERNAL_MESSAGE_FUNCTIONS_H_
#define VERBENA_RPC_INTERNAL_MESSAGE_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "absl/base/optimization.h"
#include "google/protobuf/message_lite.h"
#include "rpc/internal/protobuf_in_line.h"

namespace rpc::internal {

// In place of a message's size.
inline constexpr size_t kChangedMeanwhile = std::numeric_limits<size_t>::max();

struct MessageFunctions {
  // Writes the message to `target`, behind whose `max_bytes` are kSlopBytes
  // more, and returns its size. What is larger is not written. `max_bytes` is
  // less than INT_MAX.
  size_t (*write)(const google::protobuf::MessageLite& message, uint8_t* target,
                  size_t max_bytes);
  // Writes the message, of whose `size` write() has just told, to `target`,
  // which has room for `capacity` >= size bytes. False where it is of another
  // size by now: who makes it larger meanwhile, which nobody may, has up to
  // kSlopBytes beyond `size` overwritten.
  bool (*fill)(const google::protobuf::MessageLite& message, size_t size,
               uint8_t* target, size_t capacity);
  // See ParseInLine.
  bool (*parse)(std::string_view bytes, google::protobuf::MessageLite* message);
};

inline size_t WriteByProtobuf(const google::protobuf::MessageLite& message,
                              uint8_t* target, size_t max_bytes) {
  const size_t size = message.ByteSizeLong();
  if (ABSL_PREDICT_FALSE(size > max_bytes)) return size;
  if (ABSL_PREDICT_FALSE(SerializeInLine(message, size, target) !=
                         target + size)) {
    return kChangedMeanwhile;
  }
  return size;
}

inline bool FillByProtobuf(const google::protobuf::MessageLite& message,
                           size_t size, uint8_t* target, size_t /*capacity*/) {
  return SerializeInLine(message, size, target) == target + size;
}

inline bool ParseByProtobuf(std::string_view bytes,
                            google::protobuf::MessageLite* message) {
  return ParseInLine(bytes, message);
}

// For messages of any type.
inline constexpr MessageFunctions kProtobufsOwn = {
    &WriteByProtobuf, &FillByProtobuf, &ParseByProtobuf};

// Of a method's messages.
struct MethodMessages {
  MessageFunctions request = kProtobufsOwn;
  MessageFunctions response = kProtobufsOwn;
};

inline constexpr MethodMessages kAnyMessages = {};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_MESSAGE_FUNCTIONS_H_
