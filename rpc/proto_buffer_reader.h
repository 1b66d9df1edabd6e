// Reads a ByteBuffer as protobuf reads streams, with no copy.
//
//   rpc::ProtoBufferReader reader(&buffer);
//   if (!reader.status().ok()) return reader.status();
//   bool parsed = message.ParseFromZeroCopyStream(&reader);
//
// For those who parse a part, or by protobuf's CodedInputStream; whole messages
// go by SerializationTraits. The names are gRPC C++'s.
//
// Thread rule: one thread. The ByteBuffer must outlive the reader and not
// change meanwhile.
#ifndef VERBENA_RPC_PROTO_BUFFER_READER_H_
#define VERBENA_RPC_PROTO_BUFFER_READER_H_

#include <cstdint>

#include "google/protobuf/io/zero_copy_stream.h"
#include "rpc/byte_buffer.h"
#include "rpc/internal/chain_input_stream.h"
#include "rpc/status.h"

namespace rpc {

class ProtoBufferReader : public google::protobuf::io::ZeroCopyInputStream {
 public:
  // Where `buffer` is null or not valid, status() is INTERNAL and there is
  // nothing to read.
  explicit ProtoBufferReader(ByteBuffer* buffer);

  Status status() const { return status_; }

  // Gives the slices one after the other, where they lie.
  bool Next(const void** data, int* size) override {
    return stream_.Next(data, size);
  }
  void BackUp(int count) override { stream_.BackUp(count); }
  bool Skip(int count) override { return stream_.Skip(count); }
  int64_t ByteCount() const override { return stream_.ByteCount(); }

 private:
  internal::ChainInputStream stream_;
  Status status_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_PROTO_BUFFER_READER_H_
