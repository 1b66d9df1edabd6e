// The peer's part of READs that both CPUs copy (joint_reader.h): copies pieces
// that the QP at the other end has on offer from this side's memory into that
// side's, where this side polls anyway.
//
// What the board says may be anything. What is read is checked as the peer
// would check itself, against this device's keys; what is written lies in
// memory that the peer gave to this connection alone.
//
//   helper.Begin();                       // PacketKind::kJointRead
//   if (helper.active()) helper.Help(&budget_bytes);   // each turn
//
// Thread rule: as the QP.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_READ_HELPER_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_READ_HELPER_H_

#include <cstdint>

#include "rdma_transport/software/engine/qp_context.h"

namespace rdma::soft {

class ReadHelper {
 public:
  explicit ReadHelper(const QpContext* qp) : qp_(qp) {}

  // The peer has offers, or soon will.
  void Begin() { active_ = true; }
  // The connection is over.
  void End() { active_ = busy_ = false; }
  // Whether there may be any.
  bool active() const { return active_; }
  // Whether the last turn found some: the next is likely to.
  bool busy() const { return busy_; }

  // Copies some.
  void Help(uint64_t* budget_bytes);

 private:
  struct Copy;

  // The slot of the oldest one, or kJointSlots.
  uint32_t FindOffer(uint64_t* offer) const;
  // Returns how much was copied.
  uint64_t Take(uint32_t slot, uint64_t offer) const;
  bool Prepare(Copy* copy) const;

  const QpContext* const qp_;
  bool active_ = false;
  bool busy_ = false;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_READ_HELPER_H_
