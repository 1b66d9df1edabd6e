// When connection attempts end: the deadlines of a connection manager's ids,
// behind one descriptor.
//
//   deadlines.Set(id, timeout);
//   // once deadlines.fd() is readable:
//   while (CmId* late = deadlines.TakeExpired()) Fail(late);
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_DEADLINES_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_DEADLINES_H_

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

class Deadlines {
 public:
  // RESOURCE_EXHAUSTED: no descriptor is left for the timer.
  static absl::StatusOr<std::unique_ptr<Deadlines>> Create();

  // Readable (level-triggered) while TakeExpired has an id, and from the moment
  // that one's time has come.
  int fd() const { return timer_.get(); }

  // Sets or replaces the deadline of `id`, in `timeout` from now. A timeout of
  // zero or less has expired already; InfiniteDuration() is none.
  void Set(CmId* id, absl::Duration timeout);
  void Clear(CmId* id);

  // What is left of the time of `id`: zero when it has passed, infinite where
  // it has no deadline.
  absl::Duration Remaining(CmId* id) const;

  // The id whose deadline passed first, which is cleared; or null.
  CmId* TakeExpired();

 private:
  explicit Deadlines(UniqueFd timer) : timer_(std::move(timer)) {}
  void Arm();

  // By CLOCK_MONOTONIC.
  std::set<std::pair<int64_t, CmId*>> by_time_ns_;
  std::unordered_map<CmId*, int64_t> time_ns_;
  const UniqueFd timer_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_DEADLINES_H_
