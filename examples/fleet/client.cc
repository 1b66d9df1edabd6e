// A client of the fleet: calls each method, and prints what comes.
//
//   bazel run //examples/fleet:client -- 127.0.0.1:50052
//   bazel run //examples/fleet:client -- --reactors 127.0.0.1:50052
//   bazel run //examples/fleet:client -- --coroutines 127.0.0.1:50052
//
// Exits with 1 where a call fails that should not.
#include "examples/fleet/client.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "examples/fleet/blocking_client.h"
#include "examples/fleet/coroutine_client.h"
#include "examples/fleet/reactor_client.h"
#include "rpc/rpc.h"

namespace fleet {
namespace {

Place MakePlace(const std::string& vehicle, int east_m, int north_m) {
  Place place;
  place.set_vehicle(vehicle);
  place.mutable_position()->set_east_m(east_m);
  place.mutable_position()->set_north_m(north_m);
  return place;
}

Note MakeNote(const std::string& vehicle, const std::string& text) {
  Note note;
  note.set_vehicle(vehicle);
  note.set_text(text);
  return note;
}

void Print(const Place& place) {
  std::cout << place.vehicle() << " is " << place.position().east_m()
            << " m east and " << place.position().north_m()
            << " m north of the depot\n";
}

// Prints a status that is not OK, and whether it is.
bool Check(const rpc::Status& status) {
  if (!status.ok()) std::cout << status.ToString() << '\n';
  return status.ok();
}

bool ShowPlace(Client& client, const std::string& vehicle) {
  Place place;
  if (!Check(client.GetPlace(vehicle, &place))) return false;
  Print(place);
  return true;
}

bool ShowPlaces(Client& client) {
  Area area;
  area.mutable_south_west()->set_east_m(100);
  area.mutable_north_east()->set_east_m(1000);
  area.mutable_north_east()->set_north_m(1000);
  std::vector<Place> places;
  if (!Check(client.ListPlaces(area, &places))) return false;
  for (const Place& place : places) Print(place);
  return true;
}

bool ShowTrip(Client& client, const std::vector<Place>& places) {
  TripSummary summary;
  if (!Check(client.RecordTrip(places, &summary))) return false;
  std::cout << summary.vehicle() << " reported " << summary.places()
            << " places over " << summary.length_m() << " m\n";
  return true;
}

bool ShowTalk(Client& client) {
  std::vector<Note> answers;
  if (!Check(client.Talk(
          {MakeNote("van", "come home"), MakeNote("tram", "nobody hears this"),
           MakeNote("", "good night")},
          &answers))) {
    return false;
  }
  for (const Note& answer : answers) {
    std::cout << answer.vehicle() << ": " << answer.text() << '\n';
  }
  return true;
}

bool ShowAll(Client& client) {
  std::cout << "-- GetPlace\n";
  if (!ShowPlace(client, "bus 1")) return false;
  ShowPlace(client, "tram");  // there is none
  std::cout << "-- ListPlaces\n";
  if (!ShowPlaces(client)) return false;
  std::cout << "-- RecordTrip\n";
  if (!ShowTrip(client, {MakePlace("van", 0, 0), MakePlace("van", 30, 40),
                         MakePlace("van", 30, -60)})) {
    return false;
  }
  if (!ShowPlace(client, "van")) return false;
  ShowTrip(client, {MakePlace("van", 0, 0), MakePlace("lorry", 0, 0)});
  std::cout << "-- Talk\n";
  return ShowTalk(client);
}

// Null: there is no such option.
std::unique_ptr<Client> MakeClient(
    const std::string& option, const std::shared_ptr<rpc::Channel>& channel) {
  if (option.empty()) return std::make_unique<BlockingClient>(channel);
  if (option == "--reactors") return std::make_unique<ReactorClient>(channel);
  if (option == "--coroutines") {
    return std::make_unique<CoroutineClient>(channel);
  }
  return nullptr;
}

int Run(const std::vector<std::string>& arguments) {
  std::unique_ptr<Client> client;
  if (arguments.size() == 1 || arguments.size() == 2) {
    client = MakeClient(arguments.size() == 2 ? arguments[0] : "",
                        rpc::CreateChannel(arguments.back(),
                                           rpc::InsecureChannelCredentials()));
  }
  if (client == nullptr) {
    std::cerr << "usage: client [--reactors|--coroutines] HOST:PORT\n";
    return 1;
  }
  return ShowAll(*client) ? 0 : 1;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) { return fleet::Run({argv + 1, argv + argc}); }
