// The calls of the fleet by coroutines. See client.h.
//
//   fleet::CoroutineClient client(rpc::CreateChannel(...));
#ifndef VERBENA_EXAMPLES_FLEET_COROUTINE_CLIENT_H_
#define VERBENA_EXAMPLES_FLEET_COROUTINE_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "examples/fleet/client.h"
#include "examples/fleet/fleet.rpc.pb.h"
#include "rpc/rpc.h"

namespace fleet {

class CoroutineClient final : public Client {
 public:
  explicit CoroutineClient(const std::shared_ptr<rpc::Channel>& channel)
      : stub_(Dispatch::NewStub(channel)) {}

  rpc::Status GetPlace(const std::string& vehicle, Place* place) override;
  rpc::Status ListPlaces(const Area& area, std::vector<Place>* places) override;
  rpc::Status RecordTrip(const std::vector<Place>& places,
                         TripSummary* summary) override;
  rpc::Status Talk(const std::vector<Note>& notes,
                   std::vector<Note>* answers) override;

 private:
  const std::unique_ptr<Dispatch::Stub> stub_;
};

}  // namespace fleet

#endif  // VERBENA_EXAMPLES_FLEET_COROUTINE_CLIENT_H_
