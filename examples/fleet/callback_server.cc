// The fleet by the callback API: a handler returns a reactor, whose functions
// are called when something happened. Calls that wait have no thread.
//
//   bazel run //examples/fleet:callback_server -- 127.0.0.1:50052
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "examples/fleet/fleet.h"
#include "examples/fleet/fleet.rpc.pb.h"
#include "examples/fleet/serve.h"
#include "rpc/rpc.h"

namespace fleet {
namespace {

class Lister final : public rpc::ServerWriteReactor<Place> {
 public:
  explicit Lister(std::vector<Place> places) : places_(std::move(places)) {
    WriteNext();
  }
  void OnWriteDone(bool ok) override {
    ok ? WriteNext() : Finish(rpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (next_ == places_.size()) return Finish(rpc::Status::OK);
    StartWrite(&places_[next_++]);
  }

  const std::vector<Place> places_;
  size_t next_ = 0;
};

class Recorder final : public rpc::ServerReadReactor<Place> {
 public:
  // The summary belongs to the call, and is sent where Finish says OK.
  Recorder(Fleet* fleet, TripSummary* summary)
      : trip_(fleet), summary_(*summary) {
    StartRead(&place_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) {  // the vehicle has arrived
      summary_ = trip_.summary();
      return Finish(rpc::Status::OK);
    }
    if (rpc::Status status = trip_.Add(place_); !status.ok()) {
      return Finish(std::move(status));
    }
    StartRead(&place_);
  }
  void OnDone() override { delete this; }

 private:
  Trip trip_;
  TripSummary& summary_;
  Place place_;
};

// Reads a note, writes the answers, reads the next one.
class Talker final : public rpc::ServerBidiReactor<Note, Note> {
 public:
  explicit Talker(const Fleet& fleet) : fleet_(fleet) { StartRead(&note_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(rpc::Status::OK);
    answers_ = fleet_.Answer(note_);
    next_ = 0;
    WriteNext();
  }
  void OnWriteDone(bool ok) override {
    ok ? WriteNext() : Finish(rpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (next_ == answers_.size()) return StartRead(&note_);
    StartWrite(&answers_[next_++]);
  }

  const Fleet& fleet_;
  Note note_;
  std::vector<Note> answers_;
  size_t next_ = 0;
};

class DispatchService final : public Dispatch::CallbackService {
  rpc::ServerUnaryReactor* GetPlace(rpc::CallbackServerContext* context,
                                    const GetPlaceRequest* request,
                                    Place* place) override {
    rpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(fleet_.Find(request->vehicle(), place));
    return reactor;
  }
  rpc::ServerWriteReactor<Place>* ListPlaces(
      rpc::CallbackServerContext* context, const Area* area) override {
    return new Lister(fleet_.In(*area));
  }
  rpc::ServerReadReactor<Place>* RecordTrip(rpc::CallbackServerContext* context,
                                            TripSummary* summary) override {
    return new Recorder(&fleet_, summary);
  }
  rpc::ServerBidiReactor<Note, Note>* Talk(
      rpc::CallbackServerContext* context) override {
    return new Talker(fleet_);
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
