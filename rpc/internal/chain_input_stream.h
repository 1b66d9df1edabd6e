// Reads a buffer chain as protobuf reads streams, with no copy.
//
// For messages that arrived in several pieces; one piece is parsed where it
// lies (see message_codec.h). The chain must outlive the stream. One thread.
#ifndef VERBENA_RPC_INTERNAL_CHAIN_INPUT_STREAM_H_
#define VERBENA_RPC_INTERNAL_CHAIN_INPUT_STREAM_H_

#include <cstddef>
#include <cstdint>

#include "google/protobuf/io/zero_copy_stream.h"
#include "rpc/buffer.h"

namespace rpc::internal {

class ChainInputStream final
    : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit ChainInputStream(const BufferChain& chain) : chain_(chain) {}

  bool Next(const void** data, int* size) override;
  void BackUp(int count) override;
  bool Skip(int count) override;
  int64_t ByteCount() const override { return byte_count_; }

 private:
  const BufferChain& chain_;
  size_t index_ = 0;   // of the buffer that Next reads from
  size_t offset_ = 0;  // in that buffer
  int64_t byte_count_ = 0;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CHAIN_INPUT_STREAM_H_
