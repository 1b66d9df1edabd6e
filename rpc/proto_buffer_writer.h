// Writes a ByteBuffer as protobuf writes streams, straight into its slices.
//
//   rpc::ByteBuffer buffer;
//   rpc::ProtoBufferWriter writer(
//       &buffer, rpc::kProtoBufferWriterMaxBufferLength, total_size);
//   bool written = message.SerializeToZeroCopyStream(&writer);
//
// For those who write by protobuf's CodedOutputStream, or messages so large
// that one contiguous run of the heap is too much; other messages go by
// SerializationTraits. The names are gRPC C++'s.
//
// Thread rule: one thread. The ByteBuffer must outlive the writer, and nobody
// else may change it meanwhile. What was written is in it at once.
#ifndef VERBENA_RPC_PROTO_BUFFER_WRITER_H_
#define VERBENA_RPC_PROTO_BUFFER_WRITER_H_

#include <cstdint>

#include "google/protobuf/io/zero_copy_stream.h"
#include "rpc/buffer.h"
#include "rpc/byte_buffer.h"

namespace rpc {

// What protobuf messages are cut into.
inline constexpr int kProtoBufferWriterMaxBufferLength = 1024 * 1024;

class ProtoBufferWriter : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  // Makes `*byte_buffer` a valid one without bytes. Each slice has `block_size`
  // bytes, at least 1, but for the last; all of them have `total_size`.
  ProtoBufferWriter(ByteBuffer* byte_buffer, int block_size, int total_size);

  ProtoBufferWriter(const ProtoBufferWriter&) = delete;
  ProtoBufferWriter& operator=(const ProtoBufferWriter&) = delete;

  // False where `total_size` bytes were given out, of which none came back.
  bool Next(void** data, int* size) override;
  // Takes back the last `count` bytes of what Next gave, for the next Next.
  // REQUIRES: Next was called just before, and gave as many.
  void BackUp(int count) override;
  int64_t ByteCount() const override { return byte_count_; }

 private:
  ByteBuffer* const byte_buffer_;
  const int block_size_;
  const int total_size_;
  int64_t byte_count_ = 0;
  Buffer last_;   // what Next gave
  Buffer spare_;  // what came back of it, no part of byte_buffer_
};

}  // namespace rpc

#endif  // VERBENA_RPC_PROTO_BUFFER_WRITER_H_
