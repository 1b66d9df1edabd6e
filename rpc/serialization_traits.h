// How a type becomes the bytes of a message, and is made of them again.
//
// Protobuf messages and `ByteBuffer` are known. Whoever wants to send objects
// of another kind (flatbuffers, Cap'n Proto, plain structs) specialises
// SerializationTraits for them, as with gRPC C++; then stubs, streams and
// handlers take them as they take protobuf messages:
//
//   namespace rpc {
//   template <>
//   class SerializationTraits<Monster> {
//    public:
//     static Status Serialize(const Monster& monster, ByteBuffer* buffer,
//                             bool* own_buffer) {
//       const Slice slice(monster.bytes());  // or one that shares memory
//       *buffer = ByteBuffer(&slice, 1);
//       *own_buffer = true;
//       return Status::OK;
//     }
//     static Status Deserialize(ByteBuffer* buffer, Monster* monster) {
//       Slice slice;
//       Status status = buffer->DumpToSingleSlice(&slice);
//       if (!status.ok()) return status;
//       if (!monster->Verify(slice.begin(), slice.size())) {
//         return Status(StatusCode::INTERNAL, "not a Monster");
//       }
//       monster->Keep(std::move(slice));  // no copy if it came in one piece
//       return Status::OK;
//     }
//   };
//   }  // namespace rpc
//
// The specialisation must be seen before the type is first sent. What it
// returns that is not OK ends the call with that status. `Serialize` may give
// `*own_buffer` either value: a ByteBuffer owns its references. `Deserialize`
// may keep the buffer's memory; `*message` may have been used before.
//
// Thread rule: the functions are called on any thread, for different objects at
// once; on the server and for callbacks that may be a thread that drives the
// transport, so they must not block.
#ifndef VERBENA_RPC_SERIALIZATION_TRAITS_H_
#define VERBENA_RPC_SERIALIZATION_TRAITS_H_

#include <type_traits>
#include <utility>

#include "google/protobuf/message_lite.h"
#include "rpc/byte_buffer.h"
#include "rpc/status.h"

namespace rpc {

// Not defined for types that nobody specialised it for. The second parameter is
// for partial specialisations (std::enable_if).
template <class Message, class = void>
class SerializationTraits;

namespace internal {

// One for all protobuf messages. Calls do without it: they serialize into the
// transport's memory, see message_codec.h.
class ProtobufTraits {
 public:
  // Into one buffer of the heap. RESOURCE_EXHAUSTED beyond protobuf's limit of
  // 2 GiB - 1, INTERNAL where the message changed meanwhile.
  static Status Serialize(const google::protobuf::MessageLite& message,
                          ByteBuffer* buffer, bool* own_buffer);
  // INTERNAL where `buffer` is null, not valid or not a complete message of
  // this type; RESOURCE_EXHAUSTED beyond protobuf's limit. Clears the buffer.
  static Status Deserialize(ByteBuffer* buffer,
                            google::protobuf::MessageLite* message);
};

}  // namespace internal

template <class Message>
class SerializationTraits<
    Message,
    std::enable_if_t<std::is_base_of_v<google::protobuf::MessageLite, Message>>>
    : public internal::ProtobufTraits {};

// Shares the bytes.
template <>
class SerializationTraits<ByteBuffer> {
 public:
  static Status Serialize(const ByteBuffer& source, ByteBuffer* buffer,
                          bool* own_buffer) {
    *buffer = source;
    *own_buffer = true;
    return Status();
  }
  static Status Deserialize(ByteBuffer* buffer, ByteBuffer* target) {
    *target = std::move(*buffer);
    return Status();
  }
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERIALIZATION_TRAITS_H_
