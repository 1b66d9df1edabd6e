// What came for a call and cannot be delivered yet, in the order in which it
// came.
//
// A stream whose sink is busy can have a whole window of frames here, which is
// tens of thousands: taking the first one out costs the same however many there
// are. Nothing is allocated but the frames themselves, and none of those for a
// frame that is delivered at once.
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_HELD_FRAMES_H_
#define VERBENA_RDMA_TRANSPORT_HELD_FRAMES_H_

#include <memory>
#include <string>

#include "rpc/transport.h"

namespace rdma {

class ArrivingMessage;

// A frame that waits for its call's callbacks: behind another one, or for its
// offered parts to be read.
struct HeldFrame {
  bool ready = true;
  // On a server, the frame that opened the call.
  bool opens = false;
  rpc::IncomingFrame frame;
  std::string header;                         // frame.header's bytes
  std::shared_ptr<ArrivingMessage> arriving;  // frame.arriving, or null

 private:
  friend class HeldFrames;
  HeldFrame* next_ = nullptr;
};

class HeldFrames {
 public:
  HeldFrames() = default;
  ~HeldFrames() { clear(); }
  HeldFrames(const HeldFrames&) = delete;
  HeldFrames& operator=(const HeldFrames&) = delete;

  bool empty() const { return first_ == nullptr; }
  // Whether none waits for its offered parts. Takes as long as there are
  // frames.
  bool all_ready() const {
    const HeldFrame* frame = first_;
    while (frame != nullptr && frame->ready) frame = frame->next_;
    return frame == nullptr;
  }
  // REQUIRES: not empty().
  HeldFrame& front() { return *first_; }
  const HeldFrame& front() const { return *first_; }

  // The frame stays where it is until it is taken out.
  HeldFrame* push_back(std::unique_ptr<HeldFrame> frame) {
    HeldFrame* const added = frame.release();
    (empty() ? first_ : last_->next_) = added;
    last_ = added;
    return added;
  }
  // REQUIRES: not empty().
  std::unique_ptr<HeldFrame> pop_front() {
    std::unique_ptr<HeldFrame> taken(first_);
    first_ = taken->next_;
    return taken;
  }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  HeldFrame* first_ = nullptr;
  HeldFrame* last_ = nullptr;  // of no meaning where there is no first
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HELD_FRAMES_H_
