// What the four servers of this example serve: a few vehicles, and where they
// are. Nothing in here knows how it is called.
//
//   fleet::Fleet fleet;
//   fleet::Place place;
//   rpc::Status status = fleet.Find("bus 1", &place);
//
// Thread rule: Fleet: any thread. Trip: one thread at a time.
#ifndef VERBENA_EXAMPLES_FLEET_FLEET_H_
#define VERBENA_EXAMPLES_FLEET_FLEET_H_

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "examples/fleet/fleet.pb.h"
#include "rpc/status.h"

namespace fleet {

class Fleet {
 public:
  Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // NOT_FOUND where there is no such vehicle; Move, too.
  rpc::Status Find(const std::string& vehicle, Place* place) const;
  rpc::Status Move(const Place& place);

  // By name.
  std::vector<Place> In(const Area& area) const;

  // What is said to a note; nothing where nobody hears it.
  std::vector<Note> Answer(const Note& note) const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, Position> positions_ ABSL_GUARDED_BY(mutex_);
};

// One call of RecordTrip.
class Trip {
 public:
  explicit Trip(Fleet* fleet) : fleet_(*fleet) {}

  // Not OK: the trip ends with that; see fleet.proto.
  rpc::Status Add(const Place& place);
  const TripSummary& summary() const { return summary_; }

 private:
  Fleet& fleet_;
  Position last_;
  double length_m_ = 0;
  TripSummary summary_;
};

}  // namespace fleet

#endif  // VERBENA_EXAMPLES_FLEET_FLEET_H_
