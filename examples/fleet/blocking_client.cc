#include "examples/fleet/blocking_client.h"

#include <thread>

namespace fleet {

rpc::Status BlockingClient::GetPlace(const std::string& vehicle, Place* place) {
  rpc::ClientContext context;
  GetPlaceRequest request;
  request.set_vehicle(vehicle);
  return stub_->GetPlace(&context, request, place);
}

rpc::Status BlockingClient::ListPlaces(const Area& area,
                                       std::vector<Place>* places) {
  rpc::ClientContext context;
  const auto reader = stub_->ListPlaces(&context, area);
  Place place;
  while (reader->Read(&place)) places->push_back(place);
  return reader->Finish();
}

rpc::Status BlockingClient::RecordTrip(const std::vector<Place>& places,
                                       TripSummary* summary) {
  rpc::ClientContext context;
  const auto writer = stub_->RecordTrip(&context, summary);
  for (const Place& place : places) {
    if (!writer->Write(place)) break;  // the call is over: Finish says why
  }
  writer->WritesDone();
  return writer->Finish();
}

// Reading waits for no writing, nor the other way round: answers may come at
// any time, and a server that nobody reads stops reading.
rpc::Status BlockingClient::Talk(const std::vector<Note>& notes,
                                 std::vector<Note>* answers) {
  rpc::ClientContext context;
  const auto stream = stub_->Talk(&context);
  std::thread writing([&notes, &stream] {
    for (const Note& note : notes) {
      if (!stream->Write(note)) break;
    }
    stream->WritesDone();
  });
  Note answer;
  while (stream->Read(&answer)) answers->push_back(answer);
  writing.join();
  return stream->Finish();
}

}  // namespace fleet
