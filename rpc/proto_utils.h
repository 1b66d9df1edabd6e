// Protobuf messages into ByteBuffers and out of them, by a stream class of the
// caller's choice; for specialisations of SerializationTraits, as with gRPC
// C++.
//
//   ByteBuffer buffer;
//   bool own_buffer;
//   Status status = rpc::GenericSerialize<rpc::ProtoBufferWriter, Feature>(
//       feature, &buffer, &own_buffer);
//
// Whoever has no such class uses SerializationTraits, which serializes into one
// slice.
//
// Thread rule: no state; the objects belong to the caller.
#ifndef VERBENA_RPC_PROTO_UTILS_H_
#define VERBENA_RPC_PROTO_UTILS_H_

#include <cstddef>
#include <type_traits>

#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/message_lite.h"
#include "rpc/byte_buffer.h"
#include "rpc/internal/message_codec.h"
#include "rpc/proto_buffer_reader.h"
#include "rpc/proto_buffer_writer.h"
#include "rpc/status.h"

namespace rpc {

// In place of what was in `*buffer`. Errors: RESOURCE_EXHAUSTED beyond
// protobuf's limit of 2 GiB - 1, INTERNAL where `Writer` gave no more memory.
// The second parameter is for gRPC's sake.
template <class Writer, class = void>
Status GenericSerialize(const google::protobuf::MessageLite& message,
                        ByteBuffer* buffer, bool* own_buffer) {
  static_assert(
      std::is_base_of_v<google::protobuf::io::ZeroCopyOutputStream, Writer>,
      "Writer must be a google::protobuf::io::ZeroCopyOutputStream");
  *own_buffer = true;
  const size_t size = message.ByteSizeLong();
  if (size > internal::kMaxProtobufBytes) {
    return internal::MessageTooLargeToSend(size, internal::kMaxProtobufBytes);
  }
  Writer writer(buffer, kProtoBufferWriterMaxBufferLength,
                static_cast<int>(size));
  if (message.SerializeToZeroCopyStream(&writer)) return Status();
  return Status(StatusCode::INTERNAL,
                "the message was not serialized: the writer gave no memory, or "
                "the message was changed meanwhile");
}

// Clears the buffer once it was read. Errors: what `Reader` says of the buffer;
// INTERNAL where it is null or not a complete message of this type.
template <class Reader, class = void>
Status GenericDeserialize(ByteBuffer* buffer,
                          google::protobuf::MessageLite* message) {
  static_assert(
      std::is_base_of_v<google::protobuf::io::ZeroCopyInputStream, Reader>,
      "Reader must be a google::protobuf::io::ZeroCopyInputStream");
  if (buffer == nullptr) {
    return Status(StatusCode::INTERNAL,
                  "there is no message to parse: the ByteBuffer is null");
  }
  Status status;
  {
    Reader reader(buffer);
    status = reader.status();
    if (!status.ok()) return status;
    if (!message->ParseFromZeroCopyStream(&reader)) {
      status = internal::ParseFailure(buffer->chain().size(), *message);
    }
  }
  buffer->Clear();
  return status;
}

}  // namespace rpc

#endif  // VERBENA_RPC_PROTO_UTILS_H_
