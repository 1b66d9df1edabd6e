// Ids that are over, and whose peers cannot be told so yet: the port is down.
//
// Destroying an rdma_cm_id sends the peer a message. Where the link of this end
// is down, soft-RoCE (Linux 6.1) answers that with an error which leaves its
// general service QP, and so every later connection of the device, dead until
// the device is made anew. So such ids wait here until their port is up; on any
// device this has the good side that the peer hears of the end after all.
//
//   if (!CanBidFarewell(*id)) farewells.Add(std::move(id));
//   ...
//   farewells.BidAll();  // now and then, until farewells.empty()
//
// What waits when the owner goes is destroyed with it. Thread rule: one thread
// at a time, that of the ids' event channel.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_FAREWELLS_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_FAREWELLS_H_

#include <rdma/rdma_cma.h>

#include <vector>

#include "rdma_transport/hardware/rdma_cm_handles.h"

namespace rdma {

// Whether a message to the peer of `id` can leave: its port is up, or it has no
// device and so no peer. True where the device does not say.
bool CanBidFarewell(const rdma_cm_id& id);

class Farewells {
 public:
  // Its context becomes null: nobody is to hear of its events any more.
  void Add(UniqueCmId id);

  // Destroys those whose port is up.
  void BidAll();

  // Destroys one at once, whatever comes of it: the kernel waits for that when
  // its device is removed. REQUIRES: Add had it, and it is here still.
  void Drop(const rdma_cm_id* id);

  bool empty() const { return ids_.empty(); }

 private:
  std::vector<UniqueCmId> ids_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_FAREWELLS_H_
