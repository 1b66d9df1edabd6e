#include "examples/fleet/fleet.h"

#include <cmath>

namespace fleet {
namespace {

Position At(int east_m, int north_m) {
  Position position;
  position.set_east_m(east_m);
  position.set_north_m(north_m);
  return position;
}

Place MakePlace(const std::string& vehicle, const Position& position) {
  Place place;
  place.set_vehicle(vehicle);
  *place.mutable_position() = position;
  return place;
}

bool IsIn(const Area& area, const Position& position) {
  return position.east_m() >= area.south_west().east_m() &&
         position.east_m() <= area.north_east().east_m() &&
         position.north_m() >= area.south_west().north_m() &&
         position.north_m() <= area.north_east().north_m();
}

double Distance(const Position& a, const Position& b) {
  return std::hypot(double{1} * a.east_m() - b.east_m(),
                    double{1} * a.north_m() - b.north_m());
}

rpc::Status NoSuchVehicle(const std::string& vehicle) {
  return rpc::Status(rpc::StatusCode::NOT_FOUND,
                     "no vehicle is called '" + vehicle + "'");
}

}  // namespace

Fleet::Fleet()
    : positions_{{"bus 1", At(300, 400)},
                 {"bus 7", At(650, 100)},
                 {"lorry", At(-900, 250)},
                 {"van", At(0, 0)}} {}

rpc::Status Fleet::Find(const std::string& vehicle, Place* place) const {
  absl::MutexLock lock(&mutex_);
  const auto found = positions_.find(vehicle);
  if (found == positions_.end()) return NoSuchVehicle(vehicle);
  *place = MakePlace(vehicle, found->second);
  return rpc::Status::OK;
}

rpc::Status Fleet::Move(const Place& place) {
  absl::MutexLock lock(&mutex_);
  const auto found = positions_.find(place.vehicle());
  if (found == positions_.end()) return NoSuchVehicle(place.vehicle());
  found->second = place.position();
  return rpc::Status::OK;
}

std::vector<Place> Fleet::In(const Area& area) const {
  std::vector<Place> places;
  absl::MutexLock lock(&mutex_);
  for (const auto& [vehicle, position] : positions_) {
    if (IsIn(area, position)) places.push_back(MakePlace(vehicle, position));
  }
  return places;
}

std::vector<Note> Fleet::Answer(const Note& note) const {
  std::vector<Note> answers;
  absl::MutexLock lock(&mutex_);
  for (const auto& [vehicle, position] : positions_) {
    if (!note.vehicle().empty() && note.vehicle() != vehicle) continue;
    Note& answer = answers.emplace_back();
    answer.set_vehicle(vehicle);
    answer.set_text("understood: " + note.text());
  }
  return answers;
}

rpc::Status Trip::Add(const Place& place) {
  const bool first = summary_.places() == 0;
  if (!first && place.vehicle() != summary_.vehicle()) {
    return rpc::Status(rpc::StatusCode::INVALID_ARGUMENT,
                       "the trip is of '" + summary_.vehicle() +
                           "' and the report of '" + place.vehicle() +
                           "': report each vehicle in a call of its own");
  }
  if (rpc::Status status = fleet_.Move(place); !status.ok()) return status;
  if (!first) length_m_ += Distance(last_, place.position());
  last_ = place.position();
  summary_.set_vehicle(place.vehicle());
  summary_.set_places(summary_.places() + 1);
  summary_.set_length_m(std::llround(length_m_));
  return rpc::Status::OK;
}

}  // namespace fleet
