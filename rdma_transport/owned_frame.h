// An OutgoingFrame that has to wait: what it borrowed is copied.
#ifndef VERBENA_RDMA_TRANSPORT_OWNED_FRAME_H_
#define VERBENA_RDMA_TRANSPORT_OWNED_FRAME_H_

#include <memory>
#include <string>
#include <utility>

#include "rpc/transport.h"

namespace rdma {

class OwnedFrame {
 public:
  explicit OwnedFrame(rpc::OutgoingFrame&& frame)
      : header_(Copy(frame.header)),
        small_message_(Copy(frame.small_message)),
        frame_(std::move(frame)) {
    frame_.header = View(header_);
    frame_.small_message = View(small_message_);
    frame_.small_message_room = 0;
    frame_.sent_by_result = false;  // whoever gave it has its result already
  }
  OwnedFrame(const OwnedFrame&) = delete;
  OwnedFrame& operator=(const OwnedFrame&) = delete;

  rpc::OutgoingFrame& get() { return frame_; }

 private:
  static std::string Copy(absl::Span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
  }
  static absl::Span<const std::byte> View(const std::string& bytes) {
    return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
  }

  const std::string header_;
  const std::string small_message_;
  rpc::OutgoingFrame frame_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_OWNED_FRAME_H_
