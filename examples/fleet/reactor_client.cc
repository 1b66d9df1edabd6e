#include "examples/fleet/reactor_client.h"

#include <cstddef>
#include <future>
#include <utility>

namespace fleet {
namespace {

// Lets a thread wait for a reactor's call. A program that has something else to
// do goes on in OnDone instead.
template <class Reactor>
class Waited : public Reactor {
 public:
  rpc::Status Wait() { return done_.get_future().get(); }

  void OnDone(const rpc::Status& status) override { done_.set_value(status); }

 private:
  std::promise<rpc::Status> done_;
};

class Lister final : public Waited<rpc::ClientReadReactor<Place>> {
 public:
  Lister(Dispatch::Stub* stub, const Area& area, std::vector<Place>* places)
      : places_(*places) {
    stub->async()->ListPlaces(&context_, &area, this);
    StartRead(&place_);
    StartCall();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone follows
    places_.push_back(place_);
    StartRead(&place_);
  }

 private:
  rpc::ClientContext context_;
  Place place_;
  std::vector<Place>& places_;
};

class Recorder final : public Waited<rpc::ClientWriteReactor<Place>> {
 public:
  Recorder(Dispatch::Stub* stub, const std::vector<Place>& places,
           TripSummary* summary)
      : places_(places) {
    stub->async()->RecordTrip(&context_, summary, this);
    WriteNext();
    StartCall();
  }
  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();  // else the call is over, and OnDone follows
  }

 private:
  void WriteNext() {
    if (next_ == places_.size()) return StartWritesDone();
    StartWrite(&places_[next_++]);
  }

  rpc::ClientContext context_;
  const std::vector<Place>& places_;
  size_t next_ = 0;
};

// Writes and reads independently of each other.
class Talker final : public Waited<rpc::ClientBidiReactor<Note, Note>> {
 public:
  Talker(Dispatch::Stub* stub, const std::vector<Note>& notes,
         std::vector<Note>* answers)
      : notes_(notes), answers_(*answers) {
    stub->async()->Talk(&context_, this);
    WriteNext();
    StartRead(&answer_);
    StartCall();
  }
  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    answers_.push_back(answer_);
    StartRead(&answer_);
  }

 private:
  void WriteNext() {
    if (next_ == notes_.size()) return StartWritesDone();
    StartWrite(&notes_[next_++]);
  }

  rpc::ClientContext context_;
  const std::vector<Note>& notes_;
  size_t next_ = 0;
  Note answer_;
  std::vector<Note>& answers_;
};

}  // namespace

// A unary call needs no reactor: a function that is called at the end will do.
rpc::Status ReactorClient::GetPlace(const std::string& vehicle, Place* place) {
  rpc::ClientContext context;
  GetPlaceRequest request;
  request.set_vehicle(vehicle);
  std::promise<rpc::Status> done;
  stub_->async()->GetPlace(
      &context, &request, place,
      [&done](rpc::Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

rpc::Status ReactorClient::ListPlaces(const Area& area,
                                      std::vector<Place>* places) {
  return Lister(stub_.get(), area, places).Wait();
}

rpc::Status ReactorClient::RecordTrip(const std::vector<Place>& places,
                                      TripSummary* summary) {
  return Recorder(stub_.get(), places, summary).Wait();
}

rpc::Status ReactorClient::Talk(const std::vector<Note>& notes,
                                std::vector<Note>* answers) {
  return Talker(stub_.get(), notes, answers).Wait();
}

}  // namespace fleet
