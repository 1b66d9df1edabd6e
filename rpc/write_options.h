// How one message of a stream is written.
//
//   writer->Write(chunk, rpc::WriteOptions().set_attachment(data));
//
// Names are gRPC's; compression and buffering hints have no meaning here, where
// a message leaves at once and the wire is no bottleneck.
//
// Thread rule: a value.
#ifndef VERBENA_RPC_WRITE_OPTIONS_H_
#define VERBENA_RPC_WRITE_OPTIONS_H_

#include <utility>

#include "rpc/buffer.h"

namespace rpc {

class WriteOptions {
 public:
  // The stream's last message of this direction: no WritesDone is needed.
  WriteOptions& set_last_message() {
    last_message_ = true;
    return *this;
  }
  WriteOptions& clear_last_message() {
    last_message_ = false;
    return *this;
  }
  bool is_last_message() const { return last_message_; }

  // Bytes to go beside the message; see ClientContext::set_attachment.
  WriteOptions& set_attachment(BufferChain attachment) {
    attachment_ = std::move(attachment);
    return *this;
  }
  BufferChain& attachment() { return attachment_; }

  // Remembered, and without effect.
  WriteOptions& set_buffer_hint() { return Set(kBufferHint); }
  WriteOptions& clear_buffer_hint() { return Clear(kBufferHint); }
  bool get_buffer_hint() const { return (hints_ & kBufferHint) != 0; }
  WriteOptions& set_corked() { return set_buffer_hint(); }
  WriteOptions& clear_corked() { return clear_buffer_hint(); }
  bool is_corked() const { return get_buffer_hint(); }
  WriteOptions& set_no_compression() { return Set(kNoCompression); }
  WriteOptions& clear_no_compression() { return Clear(kNoCompression); }
  bool get_no_compression() const { return (hints_ & kNoCompression) != 0; }
  WriteOptions& set_write_through() { return Set(kWriteThrough); }
  WriteOptions& clear_write_through() { return Clear(kWriteThrough); }
  bool is_write_through() const { return (hints_ & kWriteThrough) != 0; }

 private:
  enum Hint : unsigned {
    kBufferHint = 1,
    kNoCompression = 2,
    kWriteThrough = 4,
  };

  WriteOptions& Set(Hint hint) {
    hints_ |= hint;
    return *this;
  }
  WriteOptions& Clear(Hint hint) {
    hints_ &= ~static_cast<unsigned>(hint);
    return *this;
  }

  bool last_message_ = false;
  unsigned hints_ = 0;
  BufferChain attachment_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_WRITE_OPTIONS_H_
