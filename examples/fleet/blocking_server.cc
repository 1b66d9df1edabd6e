// The fleet by the blocking API: a handler is a function, and a call that
// streams has a thread of the server for as long as it lasts.
//
//   bazel run //examples/fleet:blocking_server -- 127.0.0.1:50052
#include <memory>

#include "examples/fleet/fleet.h"
#include "examples/fleet/fleet.rpc.pb.h"
#include "examples/fleet/serve.h"
#include "rpc/rpc.h"

namespace fleet {
namespace {

class DispatchService final : public Dispatch::Service {
  rpc::Status GetPlace(rpc::ServerContext* context,
                       const GetPlaceRequest* request, Place* place) override {
    return fleet_.Find(request->vehicle(), place);
  }

  rpc::Status ListPlaces(rpc::ServerContext* context, const Area* area,
                         rpc::ServerWriter<Place>* writer) override {
    for (const Place& place : fleet_.In(*area)) {
      if (!writer->Write(place)) return rpc::Status::CANCELLED;
    }
    return rpc::Status::OK;
  }

  rpc::Status RecordTrip(rpc::ServerContext* context,
                         rpc::ServerReader<Place>* reader,
                         TripSummary* summary) override {
    Trip trip(&fleet_);
    Place place;
    while (reader->Read(&place)) {
      if (rpc::Status status = trip.Add(place); !status.ok()) return status;
    }
    *summary = trip.summary();
    return rpc::Status::OK;
  }

  rpc::Status Talk(rpc::ServerContext* context,
                   rpc::ServerReaderWriter<Note, Note>* stream) override {
    Note note;
    while (stream->Read(&note)) {
      for (const Note& answer : fleet_.Answer(note)) {
        if (!stream->Write(answer)) return rpc::Status::CANCELLED;
      }
    }
    return rpc::Status::OK;
  }

  Fleet fleet_;
};

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  fleet::DispatchService service;
  rpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<rpc::Server> server =
      fleet::Start(argc, argv, &builder);
  if (server == nullptr) return 1;
  fleet::WaitForSignal();
  fleet::Stop(server.get());
}
