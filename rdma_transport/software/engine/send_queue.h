// The slots of a send queue.
//
// Four counters walk over them in this order, and never overtake each other:
//
//   free <= done <= started <= tail
//
//   [free, done)     completed; the slots are taken until a later signaled
//                    completion was polled
//   [done, started)  on their way: SENDs without acknowledgement, READs
//   [started, tail)  waiting: for room in the ring, for a fence
//
// A slot has a small part that every work request uses, and a large one for
// those that are not over within post_send.
//
// Thread rule: as the QP.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_SEND_QUEUE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_SEND_QUEUE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rdma::soft {

// Beside ibv_send_flags, of an RDMA READ: Device::past_caches_flag.
inline constexpr unsigned int kSendPastCaches = 1u << 7;

struct SendWqe {
  enum class Phase : uint8_t {
    kWaiting,
    kSent,     // over once the link acknowledged `position`
    kReading,  // a READ or atomic that was started
    kDone,
  };

  uint64_t wr_id;
  uint64_t position;
  uint32_t byte_len;
  uint32_t immediate;  // or the rkey to invalidate
  ibv_wc_status status;
  ibv_wr_opcode opcode : 8;
  uint8_t send_flags;
  Phase phase;
  uint8_t sge_count;

  bool Has(ibv_send_flags flag) const { return (send_flags & flag) != 0; }
  bool signaled() const { return Has(IBV_SEND_SIGNALED); }
  bool passes_caches() const { return (send_flags & kSendPastCaches) != 0; }
};
static_assert(sizeof(SendWqe) == 32);

struct SendDetail {
  uint64_t remote_address;
  uint64_t compare_add;
  uint64_t swap;
  uint64_t bytes_done;       // of a joint READ, what is on offer included
  int64_t waiting_since_ns;  // for the peer's announcement or write; 0: not
  uint32_t rkey;
  bool is_joint;        // READ: the peer may copy pieces of it
  uint32_t pieces_out;  // those that are on offer, and not there
  bool revoked;  // LOCAL_INV: the key is dead, its writers may not be done
  ibv_mw* window;
  ibv_mw_bind_info bind;
};

class SendQueue {
 public:
  explicit SendQueue(const ibv_qp_cap& cap);

  uint32_t depth() const { return depth_; }
  bool full() const { return tail_ - free_ == depth_; }

  SendWqe& At(uint32_t index) { return wqes_[index & mask_]; }
  const SendWqe& At(uint32_t index) const { return wqes_[index & mask_]; }
  SendDetail& DetailAt(uint32_t index) { return details_[index & mask_]; }
  const SendDetail& DetailAt(uint32_t index) const {
    return details_[index & mask_];
  }
  // The SGEs of a request that waits or runs; inline data is a single one.
  const ibv_sge* SgesAt(uint32_t index) const {
    return reinterpret_cast<const ibv_sge*>(PayloadAt(index));
  }

  // Keeps what the caller's work request says beyond its SendWqe.
  void SaveDetail(uint32_t index, const ibv_send_wr& wr);

  void Reset() { free_ = done_ = started_ = tail_; }

  // See above.
  uint32_t free_ = 0;
  uint32_t done_ = 0;
  uint32_t started_ = 0;
  uint32_t tail_ = 0;

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  static_assert(sizeof(Unit) == sizeof(ibv_sge));

  Unit* PayloadAt(uint32_t index) const {
    return payloads_.get() + size_t{index & mask_} * payload_units_;
  }

  const uint32_t depth_;
  const uint32_t mask_;
  const size_t payload_units_;
  // Not initialised, so that memory that is never used is never touched.
  std::unique_ptr<SendWqe[]> wqes_;
  std::unique_ptr<SendDetail[]> details_;
  std::unique_ptr<Unit[]> payloads_;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_SEND_QUEUE_H_
