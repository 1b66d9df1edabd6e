// Reads a buffer chain as protobuf reads streams, with no copy.
//
// For messages that arrived in several pieces; one piece is parsed where it
// lies (see message_codec.h). The chain must outlive the stream. One thread.
#ifndef VERBENA_RPC_INTERNAL_CHAIN_INPUT_STREAM_H_
#define VERBENA_RPC_INTERNAL_CHAIN_INPUT_STREAM_H_

#include <cstddef>

#include "absl/types/span.h"
#include "rpc/buffer.h"
#include "rpc/internal/piece_input_stream.h"

namespace rpc::internal {

class ChainInputStream final : public PieceInputStream {
 public:
  explicit ChainInputStream(const BufferChain& chain) : chain_(chain) {}

 private:
  absl::Span<const std::byte> NextPiece() override {
    if (index_ == chain_.buffers().size()) return {};
    const Buffer& buffer = chain_.buffers()[index_++];
    return {buffer.data(), buffer.size()};
  }

  const BufferChain& chain_;
  size_t index_ = 0;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CHAIN_INPUT_STREAM_H_
