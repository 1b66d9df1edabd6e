// The fleet by completion queues: operations are begun with a tag, and a thread
// of ours takes the tags of those that are done out of the queue. Here a call
// is an object, which has one operation under way at a time and is its tag.
//
//   bazel run //examples/fleet:async_server -- 127.0.0.1:50052
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "examples/fleet/fleet.h"
#include "examples/fleet/fleet.rpc.pb.h"
#include "examples/fleet/serve.h"
#include "rpc/rpc.h"

namespace fleet {
namespace {

// What every call needs.
struct Shared {
  Fleet fleet;
  Dispatch::AsyncService service;
  std::unique_ptr<rpc::ServerCompletionQueue> queue;
};

class Call {
 public:
  explicit Call(Shared* shared) : shared_(*shared) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The operation is done. False: nothing more will come, delete the call.
  virtual bool Next(bool ok) = 0;

 protected:
  void* tag() { return this; }

  Shared& shared_;
  rpc::ServerContext context_;
  bool begun_ = false;     // a client called
  bool finished_ = false;  // Finish is under way
};

class GetPlaceCall final : public Call {
 public:
  // Says that a call may come; its event is the first.
  explicit GetPlaceCall(Shared* shared) : Call(shared) {
    shared_.service.RequestGetPlace(&context_, &request_, &responder_,
                                    shared_.queue.get(), shared_.queue.get(),
                                    tag());
  }
  bool Next(bool ok) override {
    if (!ok || finished_) return false;  // not OK: the server shuts down
    new GetPlaceCall(&shared_);          // for the call after this one
    finished_ = true;
    Place place;
    const rpc::Status status = shared_.fleet.Find(request_.vehicle(), &place);
    responder_.Finish(place, status, tag());
    return true;
  }

 private:
  GetPlaceRequest request_;
  rpc::ServerAsyncResponseWriter<Place> responder_{&context_};
};

class ListPlacesCall final : public Call {
 public:
  explicit ListPlacesCall(Shared* shared) : Call(shared) {
    shared_.service.RequestListPlaces(&context_, &area_, &writer_,
                                      shared_.queue.get(), shared_.queue.get(),
                                      tag());
  }
  bool Next(bool ok) override {
    if (!ok || finished_) return false;  // not OK: or the client is gone
    if (!begun_) {
      begun_ = true;
      new ListPlacesCall(&shared_);
      places_ = shared_.fleet.In(area_);
    }
    if (next_ == places_.size()) {
      finished_ = true;
      writer_.Finish(rpc::Status::OK, tag());
    } else {
      writer_.Write(places_[next_++], tag());
    }
    return true;
  }

 private:
  Area area_;
  std::vector<Place> places_;
  size_t next_ = 0;
  rpc::ServerAsyncWriter<Place> writer_{&context_};
};

class RecordTripCall final : public Call {
 public:
  explicit RecordTripCall(Shared* shared)
      : Call(shared), trip_(&shared->fleet) {
    shared_.service.RequestRecordTrip(&context_, &reader_, shared_.queue.get(),
                                      shared_.queue.get(), tag());
  }
  bool Next(bool ok) override {
    if (finished_) return false;
    if (!begun_) {
      if (!ok) return false;
      begun_ = true;
      new RecordTripCall(&shared_);
    } else if (!ok) {  // a read: the vehicle has arrived
      Finish(rpc::Status::OK);
      return true;
    } else if (rpc::Status status = trip_.Add(place_); !status.ok()) {
      Finish(status);
      return true;
    }
    reader_.Read(&place_, tag());
    return true;
  }

 private:
  void Finish(const rpc::Status& status) {
    finished_ = true;
    reader_.Finish(trip_.summary(), status, tag());
  }

  Trip trip_;
  Place place_;
  rpc::ServerAsyncReader<TripSummary, Place> reader_{&context_};
};

// Reads a note, writes the answers, reads the next one.
class TalkCall final : public Call {
 public:
  explicit TalkCall(Shared* shared) : Call(shared) {
    shared_.service.RequestTalk(&context_, &stream_, shared_.queue.get(),
                                shared_.queue.get(), tag());
  }
  bool Next(bool ok) override {
    if (finished_) return false;
    if (!begun_) {
      if (!ok) return false;
      begun_ = true;
      new TalkCall(&shared_);
    } else if (reading_) {
      if (!ok) return Finish(rpc::Status::OK);
      answers_ = shared_.fleet.Answer(note_);
      next_ = 0;
    } else if (!ok) {
      return Finish(rpc::Status::CANCELLED);
    }
    reading_ = next_ == answers_.size();
    if (reading_) {
      stream_.Read(&note_, tag());
    } else {
      stream_.Write(answers_[next_++], tag());
    }
    return true;
  }

 private:
  bool Finish(const rpc::Status& status) {
    finished_ = true;
    stream_.Finish(status, tag());
    return true;
  }

  Note note_;
  std::vector<Note> answers_;
  size_t next_ = 0;
  bool reading_ = false;
  rpc::ServerAsyncReaderWriter<Note, Note> stream_{&context_};
};

// Until the queue is shut down and empty. Several threads may do this at once,
// where one is not enough.
void HandleEvents(rpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    auto* call = static_cast<Call*>(tag);
    if (!call->Next(ok)) delete call;
  }
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  fleet::Shared shared;
  rpc::ServerBuilder builder;
  builder.RegisterService(&shared.service);
  shared.queue = builder.AddCompletionQueue();
  const std::unique_ptr<rpc::Server> server =
      fleet::Start(argc, argv, &builder);
  if (server == nullptr) return 1;

  new fleet::GetPlaceCall(&shared);
  new fleet::ListPlacesCall(&shared);
  new fleet::RecordTripCall(&shared);
  new fleet::TalkCall(&shared);
  std::thread events(fleet::HandleEvents, shared.queue.get());

  fleet::WaitForSignal();
  fleet::Stop(server.get());  // needs the thread still: calls must finish
  shared.queue->Shutdown();
  events.join();
}
