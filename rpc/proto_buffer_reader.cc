#include "rpc/proto_buffer_reader.h"

#include "rpc/buffer.h"

namespace rpc {
namespace {

const BufferChain& ChainOf(const ByteBuffer* buffer) {
  static const BufferChain& none = *new BufferChain;
  return buffer == nullptr ? none : buffer->chain();
}

}  // namespace

ProtoBufferReader::ProtoBufferReader(ByteBuffer* buffer)
    : stream_(ChainOf(buffer)) {
  if (buffer != nullptr && buffer->Valid()) return;
  status_ = Status(StatusCode::INTERNAL,
                   "there is no message to read: the ByteBuffer is not valid");
}

}  // namespace rpc
