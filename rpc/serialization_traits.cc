#include "rpc/serialization_traits.h"

#include <cstddef>
#include <utility>

#include "rpc/internal/message_codec.h"

namespace rpc::internal {

Status ProtobufTraits::Serialize(const google::protobuf::MessageLite& message,
                                 ByteBuffer* buffer, bool* own_buffer) {
  *own_buffer = true;
  const size_t size = message.ByteSizeLong();
  if (size > kMaxProtobufBytes) {
    return MessageTooLargeToSend(size, kMaxProtobufBytes);
  }
  Buffer bytes = Buffer::FromHeap(size);
  Status error;
  if (!SerializeTo(message, bytes, &error)) return error;
  *buffer = ByteBuffer(BufferChain(std::move(bytes)));
  return Status();
}

Status ProtobufTraits::Deserialize(ByteBuffer* buffer,
                                   google::protobuf::MessageLite* message) {
  if (buffer == nullptr || !buffer->Valid()) {
    return Status(StatusCode::INTERNAL,
                  "there is no message to parse: the ByteBuffer is not valid");
  }
  Status error;
  DecodeMessage(buffer->chain(), message, &error);
  buffer->Clear();
  return error;
}

}  // namespace rpc::internal
