// A frame of a call that may have to be sent again: what it borrowed is copied,
// what lies in a transport's memory is shared.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_ROUTING_KEPT_FRAME_H_
#define VERBENA_RPC_ROUTING_KEPT_FRAME_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "rpc/transport.h"

namespace rpc::routing {

class KeptFrame {
 public:
  explicit KeptFrame(OutgoingFrame&& frame);
  KeptFrame(const KeptFrame&) = delete;
  KeptFrame& operator=(const KeptFrame&) = delete;

  const std::string& header() const { return header_; }
  // What keeping it holds, itself included: frames may be empty.
  uint64_t bytes() const {
    return sizeof(KeptFrame) + header_.size() + small_message_.size() +
           frame_.message.size() + frame_.attachment.size();
  }

  // One to be sent; it refers to this object, and shares its memory.
  OutgoingFrame Share() const { return frame_; }
  // The last one.
  OutgoingFrame Take() { return std::move(frame_); }

 private:
  const std::string header_;
  const std::string small_message_;
  OutgoingFrame frame_;
};

// The same of a frame that came.
class HeldIncomingFrame {
 public:
  explicit HeldIncomingFrame(IncomingFrame& frame);
  HeldIncomingFrame(const HeldIncomingFrame&) = delete;
  HeldIncomingFrame& operator=(const HeldIncomingFrame&) = delete;

  IncomingFrame& get() { return frame_; }

 private:
  const std::string header_;
  IncomingFrame frame_;
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_KEPT_FRAME_H_
