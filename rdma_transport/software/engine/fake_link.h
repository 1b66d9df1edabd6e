// A link of a test's own.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_FAKE_LINK_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_FAKE_LINK_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rdma_transport/software/engine/link.h"

namespace rdma::soft {

// A ring of kRoom packets that the test acknowledges, and one of kIncomingLines
// lines that it writes to.
class FakeLink final : public Link {
 public:
  static constexpr uint64_t kRoom = 8;
  static constexpr uint32_t kIncomingLines = 8;

  FakeLink() {
    rx_ = IncomingRing(lines_.data(), kIncomingLines);
    peer_ = OutgoingRing(lines_.data(), kIncomingLines);
    recv_bell_.armed = &peer_armed_;
  }

  // The peer sends a small packet.
  void PutIncoming() {
    peer_.SetConsumed(rx_.position());
    peer_.Publish({.kind = PacketKind::kSendWithImmediate});
  }
  void TakeIncoming() { rx_.Advance(1); }

  uint64_t Send(const Packet&, const ConstBytes*, int) override {
    wanted_at_send_.push_back(wanted_);
    if (sent_ - acknowledged_ == kRoom) return 0;
    return ++sent_;
  }
  void Wake(bool) override {}
  void WakeReader() override {}
  uint64_t acknowledged() override { return acknowledged_; }
  void WantAcknowledgement(uint64_t position) override { wanted_ = position; }
  PeekResult Peek(Packet*) override { return PeekResult::kNothing; }
  void Read(uint32_t, void*, uint32_t) override {}
  void Consume() override {}
  void Acknowledge() override {}
  bool PeerClosed() const override { return false; }
  KeyView peer_keys() const override { return peer_keys_; }
  uint32_t peer_access() const override { return peer_access_; }
  Access Resolve(uint32_t, uint64_t offset, uint64_t, bool,
                 std::byte** address) override {
    if (peer_memory_ == nullptr) return Access::kInvalid;
    *address = peer_memory_ + offset;
    return Access::kOk;
  }
  void PublishWriting(uint32_t) override {}
  bool Announce(uint32_t) override { return true; }
  void Withdraw(uint32_t) override {}
  uint32_t PeersWritingKey() const override { return 0; }
  void SetAccess(uint32_t) override {}
  bool IsPeerGone() const override { return false; }
  void MarkClosed() override {}
  void HangUp() override {}
  int fd() const override { return -1; }
  void Service() override {}
  const char* violation() const override { return ""; }

  // Its joint READs' boards.
  void UseBoards(JointReadBoard* own, const JointReadBoard* peers) {
    own_board_ = own;
    peer_board_ = peers;
  }

  std::atomic<uint32_t> peer_armed_{0};
  uint32_t peer_access_ = 0;
  KeyView peer_keys_;                 // without any
  std::byte* peer_memory_ = nullptr;  // the one arena of those keys
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t wanted_ = 0;
  std::vector<uint64_t> wanted_at_send_;

 private:
  std::array<RingLine, kIncomingLines> lines_ = {};
  OutgoingRing peer_;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_FAKE_LINK_H_
