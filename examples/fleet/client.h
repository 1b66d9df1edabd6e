// The calls of fleet.proto as plain functions, which return when the call is
// over. blocking_client.h, reactor_client.h and coroutine_client.h have one
// each: what differs is how the calls are made.
//
// Thread rule: any thread.
#ifndef VERBENA_EXAMPLES_FLEET_CLIENT_H_
#define VERBENA_EXAMPLES_FLEET_CLIENT_H_

#include <string>
#include <vector>

#include "examples/fleet/fleet.pb.h"
#include "rpc/status.h"

namespace fleet {

class Client {
 public:
  virtual ~Client() = default;
  virtual rpc::Status GetPlace(const std::string& vehicle, Place* place) = 0;
  virtual rpc::Status ListPlaces(const Area& area,
                                 std::vector<Place>* places) = 0;
  virtual rpc::Status RecordTrip(const std::vector<Place>& places,
                                 TripSummary* summary) = 0;
  virtual rpc::Status Talk(const std::vector<Note>& notes,
                           std::vector<Note>* answers) = 0;
};

}  // namespace fleet

#endif  // VERBENA_EXAMPLES_FLEET_CLIENT_H_
