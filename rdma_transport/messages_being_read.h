// How many large messages of peers a poller's connections read, and so whether
// one is worth parsing while it is being read (arriving_message.h).
//
// It is not where several are read at a time. Nobody is idle then, READs of the
// others come before the next chunk's, and their calls wait for the one that is
// parsed.
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_MESSAGES_BEING_READ_H_
#define VERBENA_RDMA_TRANSPORT_MESSAGES_BEING_READ_H_

#include <cstdint>

namespace rdma {

class MessagesBeingRead {
 public:
  void Add() {
    if (++count_ > 1) whole_left_ = kWholeAfterSeveral;
  }
  void Remove() { --count_; }

  // Of the one that was added last. Where there were several at a time, the
  // next ones are likely to meet others.
  bool IsLikelyAlone() {
    if (whole_left_ > 0) {
      --whole_left_;
      return false;
    }
    return count_ == 1;
  }

 private:
  static constexpr uint32_t kWholeAfterSeveral = 16;

  uint32_t count_ = 0;
  uint32_t whole_left_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_MESSAGES_BEING_READ_H_
