// The fleet by coroutines: handlers read as those of blocking_server.cc, and a
// call that waits has no thread.
//
//   bazel run //examples/fleet:coroutine_server -- 127.0.0.1:50052
#include <memory>

#include "examples/fleet/fleet.h"
#include "examples/fleet/fleet.rpc.pb.h"
#include "examples/fleet/serve.h"
#include "rpc/rpc.h"

namespace fleet {
namespace {

class DispatchService final : public Dispatch::CoroutineService {
  rpc::Task<rpc::Status> GetPlace(rpc::CallbackServerContext* context,
                                  const GetPlaceRequest* request,
                                  Place* place) override {
    co_return fleet_.Find(request->vehicle(), place);
  }

  rpc::Task<rpc::Status> ListPlaces(
      rpc::CallbackServerContext* context, const Area* area,
      rpc::CoroServerWriter<Place>* writer) override {
    for (const Place& place : fleet_.In(*area)) {
      if (!co_await writer->Write(place)) co_return rpc::Status::CANCELLED;
    }
    co_return rpc::Status::OK;
  }

  rpc::Task<rpc::Status> RecordTrip(rpc::CallbackServerContext* context,
                                    rpc::CoroServerReader<Place>* reader,
                                    TripSummary* summary) override {
    Trip trip(&fleet_);
    Place place;
    while (co_await reader->Read(&place)) {
      if (rpc::Status status = trip.Add(place); !status.ok()) co_return status;
    }
    *summary = trip.summary();
    co_return rpc::Status::OK;
  }

  rpc::Task<rpc::Status> Talk(
      rpc::CallbackServerContext* context,
      rpc::CoroServerReaderWriter<Note, Note>* stream) override {
    Note note;
    while (co_await stream->Read(&note)) {
      for (const Note& answer : fleet_.Answer(note)) {
        if (!co_await stream->Write(answer)) co_return rpc::Status::CANCELLED;
      }
    }
    co_return rpc::Status::OK;
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
