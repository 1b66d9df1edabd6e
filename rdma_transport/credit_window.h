// Both halves of a connection's credit-based flow control
// (docs/wire_format.md, "Credits").
//
// A frame is sent only into a receive buffer that the peer has granted, so that
// an RNR is the exception. Conservation, for each direction:
//
//   held by the sender + in flight + received and not granted again = window
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_CREDIT_WINDOW_H_
#define VERBENA_RDMA_TRANSPORT_CREDIT_WINDOW_H_

#include <algorithm>
#include <cstdint>

namespace rdma {

// The sender's half: what the peer granted.
class SendCredits {
 public:
  // The last credit is kept for a frame that only grants credits: two sides
  // that both ran out could otherwise never tell each other.
  static constexpr uint32_t kReserved = 1;

  void Reset(uint32_t initial) { held_ = least_ = most_ = initial; }

  bool CanSend() const { return held_ > kReserved; }
  bool CanSendCredits() const { return held_ > 0; }
  // Whether it would be true of Add.
  bool CanAdd(uint32_t granted) const {
    return held_ + granted <= kMostCredits;
  }
  // REQUIRES: CanSend(), or CanSendCredits() for a frame of credits only.
  void Spend() {
    if (--held_ < least_) [[unlikely]]
      least_ = held_;
  }
  // False: the peer granted more than anybody can hold; it broke the protocol.
  [[nodiscard]] bool Add(uint32_t granted) {
    held_ += granted;
    if (held_ > most_) [[unlikely]]
      most_ = held_;
    return held_ <= kMostCredits;
  }
  uint32_t held() const { return held_; }
  // Gives back all but `keep`; returns how many.
  uint32_t GiveBack(uint32_t keep) {
    const uint32_t given = held_ > keep ? held_ - keep : 0;
    held_ -= given;
    return given;
  }
  // Ends a period and begins the next. Gives back half of what lay unused all
  // the time, though never below `keep`, where that was three quarters of the
  // most that was held: what is left is still twice what was needed.
  uint32_t GiveBackUnused(uint32_t keep) {
    const bool mostly_unused = least_ >= most_ - most_ / 4;
    const uint32_t given =
        mostly_unused ? GiveBack(std::max(keep, held_ - least_ / 2)) : 0;
    least_ = most_ = held_;
    return given;
  }

 private:
  static constexpr uint32_t kMostCredits = 1 << 16;

  uint32_t held_ = 0;
  // In this period.
  uint32_t least_ = 0;
  uint32_t most_ = 0;
};

// The receiver's half: what this side granted, and may grant again.
class ReceiveCredits {
 public:
  void Reset(uint32_t window) { window_ = outstanding_ = window; }

  // A frame came. False: the peer sent without a credit.
  [[nodiscard]] bool Consume() {
    if (outstanding_ == 0) [[unlikely]]
      return false;
    --outstanding_;
    return true;
  }
  // How many could be granted now, and the granting of them. Bounded by the
  // frame's 16-bit field.
  uint16_t Owed() const {
    if (outstanding_ >= window_) return 0;
    const uint32_t owed = window_ - outstanding_;
    if (owed > UINT16_MAX) [[unlikely]]
      return UINT16_MAX;
    return static_cast<uint16_t>(owed);
  }
  uint16_t Grant() {
    const uint16_t owed = Owed();
    outstanding_ += owed;
    return owed;
  }
  // Half the window is worth a frame of its own.
  bool ShouldGrantNow() const { return outstanding_ * 2 <= window_; }

  // The peer gave credits back: the window shrinks by as many, though not below
  // `least`. False: more than it can have.
  [[nodiscard]] bool TakeBack(uint32_t count, uint32_t least) {
    if (count > outstanding_) return false;
    outstanding_ -= count;
    if (window_ > least) window_ = std::max(window_ - count, least);
    return true;
  }

  // A larger window is granted as it is; a smaller one takes hold as frames
  // come.
  void SetWindow(uint32_t window) { window_ = window; }
  uint32_t window() const { return window_; }
  uint32_t outstanding() const { return outstanding_; }

 private:
  uint32_t window_ = 0;
  uint32_t outstanding_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CREDIT_WINDOW_H_
