// What a stream does for its user, and how the user hears that it is done.
//
// Reading, writing and finishing a stream are operations: each is begun with an
// object of the user's API, which is completed once, at once or later. So the
// streams themselves know nothing of the APIs on top of them.
//
// Thread rule: an operation is begun by one thread, and completed by any.
#ifndef VERBENA_RPC_INTERNAL_STREAM_OPERATION_H_
#define VERBENA_RPC_INTERNAL_STREAM_OPERATION_H_

#include <cstdint>

#include "rpc/buffer.h"
#include "rpc/transport.h"

namespace rpc::internal {

class StreamOperation {
 public:
  // `ok` as in gRPC: of a read, that there was a message; of a write, that it
  // is on its way. The stream does not touch the object any more. No lock of
  // the stream is held; must not block where a transport calls it.
  virtual void Complete(bool ok) = 0;

 protected:
  ~StreamOperation() = default;
};

// One that a thread waits for: the blocking API's.
class BlockingOperation final : public StreamOperation {
 public:
  void Complete(bool ok) override {
    ok_ = ok;
    done_.Set();
  }
  Event& done() { return done_; }
  // Once done.
  bool ok() const { return ok_; }

 private:
  bool ok_ = false;
  Event done_;
};

// A message as it came.
struct StreamMessage {
  BufferChain message;
  BufferChain attachment;
  uint64_t window_bytes = 0;  // see IncomingFrame
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_STREAM_OPERATION_H_
