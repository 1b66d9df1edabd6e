// The wire between two connected QPs, as the verbs engine sees it.
//
// A link carries packets in order, both ways, and gives access to the peer's
// registered memory. The engine decides what packets mean; a link only moves
// them. There is a link on shared memory (shm/shm_link.h); one in a single
// process, on a virtual clock, fits the same interface. What most packets are,
// small ones (packet.h), goes through rings (packet_ring.h) that each link
// gives to this class, without a virtual call.
//
// The life of a SEND:
//   sender    position = link->Send(packet, parts, count);   // 0: no room now
//             link->Wake(solicited);                       // once for a batch
//   receiver  if (link->HasIncoming() && link->Peek(&packet) == kPacket)
//               link->Read(0, buffer, packet.payload_bytes); link->Consume();
//             link->Acknowledge();                         // once for a batch
//   sender    if (link->acknowledged() >= position) ...      // it is there
//
// Thread rule: one thread at a time, the QP's, but for the functions that are
// marked thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_LINK_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "rdma_transport/asymmetric_fence.h"
#include "rdma_transport/software/engine/joint_read_board.h"
#include "rdma_transport/software/engine/key_table.h"
#include "rdma_transport/software/engine/packet.h"
#include "rdma_transport/software/engine/packet_ring.h"

namespace rdma::soft {

// An announcement of memory was sent before the memory can be asked for, or
// waits for room on its way. A peer whose announcement does not come within
// this broke the protocol, or is stuck.
inline constexpr int64_t kAnnouncementLimitNs = 5'000'000'000;

// Arenas that a device may have, and so those that its peers may have to map.
inline constexpr size_t kMaxArenas = 4096;

struct ConstBytes {
  const std::byte* data;
  uint32_t bytes;
};

// Who wants to hear that a link's peer hung up.
class HangUpObserver {
 public:
  // On any thread. Must not block.
  virtual void OnHangUp() = 0;

 protected:
  ~HangUpObserver() = default;
};

class Link {
 public:
  enum class PeekResult {
    kNothing,
    kPacket,
    kViolation,  // the peer wrote what no peer may write; the link is over
  };
  enum class Access {
    kOk,
    kNotYet,   // the peer's announcement of that arena is on its way
    kInvalid,  // outside of the arena, or not mappable that way
  };

  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  // --- Outgoing ---

  // Sends one packet whose payload is the parts, of kMaxPayloadBytes at most.
  // Returns its position, which grows from packet to packet, or 0 where there
  // is no room now: room comes with acknowledgements. Packets that end a
  // connection (kRefused, kGone, kAccessFault) find room that is kept for them,
  // once each.
  virtual uint64_t Send(const Packet& packet, const ConstBytes* parts,
                        int part_count) = 0;
  // Whether PutShort may follow. Where not, there may be room for Send.
  bool MayPutShort() const {
    return tx_.MayPutShort() &&
           !control_pending_.load(std::memory_order_relaxed);
  }
  // Sends a small packet, its bytes in one piece. True: Wake must follow, as
  // the peer sleeps. `described`: kDescribedBit where the bytes are
  // descriptors of memory that was announced. REQUIRES: MayPutShort(), bytes <=
  // kShortBytes.
  [[nodiscard]] bool PutShort(uint32_t immediate, const std::byte* data,
                              uint32_t bytes, uint64_t described = 0) {
    tx_.PutShort(immediate, data, bytes, described);
    FenceBeforeBell();
    return recv_bell_.armed->load(std::memory_order_relaxed) != 0;
  }
  // The same and Wake, for one that is longer, or goes around the ring's end.
  // False: Send it, nothing happened; there may be room. REQUIRES: bytes <=
  // kMaxPayloadBytes.
  bool SendSmall(uint32_t immediate, const std::byte* data, uint32_t bytes);
  // The position of the last packet that was sent by either.
  uint64_t sent_position() const { return tx_.position(); }
  // Wakes the peer where it sleeps and what was sent since the last call wants
  // it to wake. After every batch of Sends.
  virtual void Wake(bool solicited) = 0;
  // Packets up to this position were consumed.
  virtual uint64_t acknowledged() = 0;
  // The peer is to wake us, where we sleep, once it consumed this position; 0:
  // never. What it consumed before it could see this it does not wake us for:
  // a packet that is sent after the call is safe, for others the caller orders
  // this before a look at acknowledged().
  virtual void WantAcknowledgement(uint64_t position) = 0;

  // --- Incoming ---

  // Cheap: one load of one cache line.
  bool HasIncoming() const {
    uint64_t word;
    return rx_.HasPacket(&word);
  }
  // See IncomingRing.
  IdleRing idle_ring() const { return rx_.idle(); }
  // For who waits for a packet: has the cache fetch anew what a small one has
  // beside its first line, so that both lines come at once, not one by one.
  void AnticipateIncoming() const { rx_.FetchSecondLine(); }
  // Whether the next packet is there, and a small one, and the word that it
  // begins with. What that says of its length may be wrong.
  bool PeekSmall(uint64_t* word) const { return rx_.HasSmallPacket(word); }
  // Whether there was any packet, by the word that PeekSmall gave.
  bool IsPacket(uint64_t word) const { return rx_.IsPacket(word); }
  // What is described by a packet that is no small one, by PeekSmall's word:
  // up to kLineDescriptors pieces, of which `pieces` has room for all. Returns
  // how many; 0: it is none of those.
  uint32_t PeekDescribed(uint64_t word, Descriptor* pieces) const {
    return rx_.ReadDescribed(word, pieces);
  }
  // Takes the packet that PeekDescribed told of.
  void TakeDescribed() { rx_.Advance(1); }
  // Takes the packet that PeekSmall told of: Read of its `bytes`, and Consume.
  // REQUIRES: bytes <= kMaxPayloadBytes.
  void TakeSmall(void* out, uint32_t bytes) {
    rx_.TakeSmall(static_cast<std::byte*>(out), bytes);
  }
  // The next packet, which stays the next one until Consume.
  virtual PeekResult Peek(Packet* packet) = 0;
  // Copies payload of the packet that Peek gave.
  // REQUIRES: offset + bytes <= its payload_bytes.
  virtual void Read(uint32_t offset, void* out, uint32_t bytes) = 0;
  virtual void Consume() = 0;
  // Several packets were taken in this turn, or one: who answers them sends as
  // many. After every batch of Consumes or TakeSmalls.
  void SetSeveralTaken(bool several) { tx_.SetMoreFollow(several); }
  // Tells the peer what was consumed. After every batch of Consumes.
  virtual void Acknowledge() = 0;
  // The same after packets of which one at least was taken by TakeSmall or
  // TakeDescribed.
  void AcknowledgeSmall() {
    own_consumed_->store(rx_.position(), std::memory_order_release);
    FenceBeforeBell();
    if (ack_bell_->armed->load(std::memory_order_relaxed) != 0) [[unlikely]]
      Acknowledge();
  }
  // The peer's QP left RTS: it admits nothing any more, and described payload
  // that was copied before this was found true is whole, what was copied later
  // may not be.
  virtual bool PeerClosed() const = 0;

  // --- The peer's memory ---

  virtual KeyView peer_keys() const = 0;
  uint32_t peer_qp_num() const { return peer_qp_num_; }
  // Of this process's links, no two of which ever have the same one.
  uint64_t serial() const { return serial_; }
  uint32_t peer_pd() const { return peer_pd_; }
  // ibv_access_flags that the peer's QP admits.
  virtual uint32_t peer_access() const = 0;
  // Where [offset, offset + bytes) of the peer's arena is mapped here.
  virtual Access Resolve(uint32_t arena, uint64_t offset, uint64_t bytes,
                         bool writable, std::byte** address) = 0;
  // Says to the peer's owner that we write under this key, before the key is
  // looked up; 0: no longer.
  virtual void PublishWriting(uint32_t key) = 0;

  // --- Our memory ---

  // Lets the peer have an arena of ours. True: it gets to know of it before
  // anything that is sent from now on. False: the announcement waits for room
  // on its way and follows as soon as it can. Thread-safe.
  virtual bool Announce(uint32_t arena) = 0;
  // The arena is gone: the peer may forget it. Thread-safe.
  virtual void Withdraw(uint32_t arena) = 0;
  // The key of ours that the peer says it writes under now, 0: none. Any number
  // where it lies. Thread-safe.
  virtual uint32_t PeersWritingKey() const = 0;
  // What our QP admits.
  virtual void SetAccess(uint32_t access) = 0;

  // --- READs that both sides copy (joint_read_board.h) ---

  // Null: this link has none.
  JointReadBoard* own_board() const { return own_board_; }
  const JointReadBoard* peer_board() const { return peer_board_; }
  // Wakes the peer where it sleeps and waits for what it reads.
  virtual void WakeReader() = 0;
  // Who sleeps takes nothing that it is not woken for.
  bool PeerSleeps() const {
    return recv_bell_.armed->load(std::memory_order_relaxed) != 0;
  }

  // --- Life ---

  // The peer hung up; packets that arrived before can still be consumed.
  // Thread-safe.
  bool hung_up() const { return hung_up_.load(std::memory_order_acquire); }
  // Thread-safe; says so to the observer.
  void MarkHungUp() {
    hung_up_.store(true, std::memory_order_release);
    std::lock_guard lock(observer_mutex_);
    if (observer_ != nullptr) observer_->OnHangUp();
  }
  // Asks whether the peer hung up, at the cost of a system call. Once we hung
  // up this stays as it was then. Thread-safe.
  virtual bool IsPeerGone() const = 0;
  // Null: nobody. Thread-safe; afterwards the previous one is not called.
  void SetObserver(HangUpObserver* observer) {
    std::lock_guard lock(observer_mutex_);
    observer_ = observer;
  }
  // Our QP left RTS: the peer must not use what our packets describe any more,
  // and begins no READ, WRITE or atomic; one that runs may not be over yet.
  virtual void MarkClosed() = 0;
  // Hangs up. Thread-safe.
  virtual void HangUp() = 0;
  // A descriptor to poll for reading, which tells of the peer's waking us and
  // hanging up; -1 where there is none.
  virtual int fd() const = 0;
  // Takes from fd() what there is. May find that the peer hung up, or that it
  // rang (TakeRing).
  virtual void Service() = 0;
  // Whether the peer rang since the last call. It rings once for each arming of
  // a CQ: one that is still armed must be armed anew.
  bool TakeRing() { return std::exchange(rang_, false); }
  bool rang() const { return rang_; }
  // What the last kViolation was.
  virtual const char* violation() const = 0;

 protected:
  Link();

  // A CQ line of the peer's that we look at, and what we rang for.
  struct Bell {
    const std::atomic<uint32_t>* armed = nullptr;
    uint32_t rung = 0;
  };

  void FenceBeforeBell() const {
    if (asymmetric_) [[likely]] {
      AsymmetricFence::Light();
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }

  // What sending touches.
  OutgoingRing tx_;
  Bell recv_bell_;
  bool asymmetric_ = false;  // both sides use AsymmetricFence
  // Something waits for room on its way, and is tried again with the next Send.
  std::atomic<bool> control_pending_{false};

  // What receiving touches.
  IncomingRing rx_;
  std::atomic<uint64_t>* own_consumed_ = nullptr;  // rx_'s, for the peer
  Bell send_bell_;            // of no use where the peer has one CQ for both
  Bell* ack_bell_ = nullptr;  // one of the two

  JointReadBoard* own_board_ = nullptr;
  const JointReadBoard* peer_board_ = nullptr;

  bool rang_ = false;
  uint32_t peer_qp_num_ = 0;
  uint32_t peer_pd_ = 0;

 private:
  const uint64_t serial_;
  std::atomic<bool> hung_up_{false};
  std::mutex observer_mutex_;
  HangUpObserver* observer_ = nullptr;  // guarded by observer_mutex_
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_LINK_H_
