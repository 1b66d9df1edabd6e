#include "examples/fleet/coroutine_client.h"

#include <exception>
#include <future>

namespace fleet {
namespace {

using TalkStream = rpc::CoroClientReaderWriter<Note, Note>;

rpc::Task<rpc::Status> Get(Dispatch::Stub* stub, std::string vehicle,
                           Place* place) {
  rpc::ClientContext context;
  GetPlaceRequest request;
  request.set_vehicle(vehicle);
  co_return co_await stub->coro()->GetPlace(&context, request, place);
}

rpc::Task<rpc::Status> List(Dispatch::Stub* stub, Area area,
                            std::vector<Place>* places) {
  rpc::ClientContext context;
  const auto reader = stub->coro()->ListPlaces(&context, area);
  Place place;
  while (co_await reader->Read(&place)) places->push_back(place);
  co_return co_await reader->Finish();
}

rpc::Task<rpc::Status> Record(Dispatch::Stub* stub, std::vector<Place> places,
                              TripSummary* summary) {
  rpc::ClientContext context;
  const auto writer = stub->coro()->RecordTrip(&context, summary);
  for (const Place& place : places) {
    if (!co_await writer->Write(place)) break;  // it is over: Finish says why
  }
  co_await writer->WritesDone();
  co_return co_await writer->Finish();
}

rpc::Task<> WriteAll(TalkStream* stream, std::vector<Note> notes) {
  for (const Note& note : notes) {
    if (!co_await stream->Write(note)) break;
  }
  co_await stream->WritesDone();
}

rpc::Task<> ReadAll(TalkStream* stream, std::vector<Note>* answers) {
  Note answer;
  while (co_await stream->Read(&answer)) answers->push_back(answer);
}

rpc::Task<rpc::Status> Finish(TalkStream* stream) {
  co_return co_await stream->Finish();
}

}  // namespace

rpc::Status CoroutineClient::GetPlace(const std::string& vehicle,
                                      Place* place) {
  return rpc::SyncWait(Get(stub_.get(), vehicle, place));
}

rpc::Status CoroutineClient::ListPlaces(const Area& area,
                                        std::vector<Place>* places) {
  return rpc::SyncWait(List(stub_.get(), area, places));
}

rpc::Status CoroutineClient::RecordTrip(const std::vector<Place>& places,
                                        TripSummary* summary) {
  return rpc::SyncWait(Record(stub_.get(), places, summary));
}

// Reading waits for no writing, nor the other way round: one coroutine each.
// The stream must outlive both.
rpc::Status CoroutineClient::Talk(const std::vector<Note>& notes,
                                  std::vector<Note>* answers) {
  rpc::ClientContext context;
  const auto stream = stub_->coro()->Talk(&context);
  std::promise<void> written;
  rpc::Detach(WriteAll(stream.get(), notes),
              [&written](const std::exception_ptr&) { written.set_value(); });
  rpc::SyncWait(ReadAll(stream.get(), answers));
  written.get_future().wait();
  return rpc::SyncWait(Finish(stream.get()));
}

}  // namespace fleet
