#include "tests/conformance/pump.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/conformance/work_request.h"

namespace rdma::conformance {
namespace {

constexpr absl::Duration kPatienceAfterALoss = absl::Milliseconds(200);

// Completions drawn from one CQ in one turn.
constexpr int kBatch = 16;

// A completion that no test expects.
ibv_wc LostCompletion() {
  ibv_wc wc = {};
  wc.wr_id = ~uint64_t{0};
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

class Deadline {
 public:
  explicit Deadline(absl::Duration time)
      : end_(std::chrono::steady_clock::now() +
             absl::ToChronoNanoseconds(time)) {}
  bool passed() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  std::chrono::steady_clock::time_point end_;
};

}  // namespace

void Pump::Watch(ibv_cq* cq) {
  if (Find(cq) == nullptr) cqs_.push_back({cq, {}});
}

void Pump::Unwatch(ibv_cq* cq) {
  std::erase_if(cqs_, [cq](const WatchedCq& entry) { return entry.cq == cq; });
}

void Pump::Watch(ConnectionManager* manager) {
  if (Find(manager) == nullptr) managers_.push_back({manager, {}});
}

void Pump::Unwatch(ConnectionManager* manager) {
  std::erase_if(managers_, [manager](const WatchedManager& entry) {
    return entry.manager == manager;
  });
}

Pump::WatchedCq* Pump::Find(ibv_cq* cq) {
  auto found =
      std::find_if(cqs_.begin(), cqs_.end(),
                   [cq](const WatchedCq& entry) { return entry.cq == cq; });
  return found == cqs_.end() ? nullptr : &*found;
}

Pump::WatchedManager* Pump::Find(ConnectionManager* manager) {
  auto found = std::find_if(managers_.begin(), managers_.end(),
                            [manager](const WatchedManager& entry) {
                              return entry.manager == manager;
                            });
  return found == managers_.end() ? nullptr : &*found;
}

void Pump::Turn() {
  bool idle = true;
  for (WatchedCq& watched : cqs_) {
    ibv_wc found[kBatch];
    const int count = ibv_poll_cq(watched.cq, kBatch, found);
    if (count < 0) {
      ADD_FAILURE() << "ibv_poll_cq returned " << count;
      continue;
    }
    watched.found.insert(watched.found.end(), found, found + count);
    idle = idle && count == 0;
  }
  for (WatchedManager& watched : managers_) {
    while (std::optional<CmEvent> event = watched.manager->GetEvent()) {
      watched.found.push_back(*std::move(event));
      idle = false;
    }
  }
  // The other end may be a thread or a process that needs this CPU.
  if (idle) std::this_thread::yield();
}

bool Pump::Until(const std::function<bool()>& done, std::string_view what) {
  const Deadline deadline(patience_);
  while (!done()) {
    if (deadline.passed()) {
      ADD_FAILURE() << "waited " << absl::FormatDuration(patience_)
                    << " in vain for " << what;
      patience_ = std::min(patience_, kPatienceAfterALoss);
      return false;
    }
    Turn();
  }
  return true;
}

ibv_wc Pump::Await(ibv_cq* cq) {
  WatchedCq* watched = Find(cq);
  if (watched == nullptr) {
    ADD_FAILURE() << "the test waits for a CQ that it does not watch";
    return LostCompletion();
  }
  if (!Until([watched] { return !watched->found.empty(); }, "a completion")) {
    return LostCompletion();
  }
  const ibv_wc wc = watched->found.front();
  watched->found.pop_front();
  return wc;
}

std::vector<ibv_wc> Pump::Await(ibv_cq* cq, size_t count) {
  std::vector<ibv_wc> found;
  while (found.size() < count && !testing::Test::HasFatalFailure()) {
    found.push_back(Await(cq));
    if (found.back().wr_id == ~uint64_t{0}) break;
  }
  return found;
}

std::optional<CmEvent> Pump::Await(ConnectionManager* manager) {
  WatchedManager* watched = Find(manager);
  if (watched == nullptr) {
    ADD_FAILURE() << "the test waits for a manager that it does not watch";
    return std::nullopt;
  }
  if (!Until([watched] { return !watched->found.empty(); },
             "an event of the connection manager")) {
    return std::nullopt;
  }
  CmEvent event = std::move(watched->found.front());
  watched->found.pop_front();
  return event;
}

void Pump::TurnFor(absl::Duration time) {
  for (const Deadline end(time); !end.passed();) Turn();
}

void Pump::ExpectSilence(ibv_cq* cq) {
  TurnFor(silence_);
  const WatchedCq* watched = Find(cq);
  if (watched == nullptr || watched->found.empty()) return;
  ADD_FAILURE() << "expected no completion, found "
                << testing::PrintToString(watched->found.front());
}

void Pump::ExpectSilence(ConnectionManager* manager) {
  TurnFor(silence_);
  const WatchedManager* watched = Find(manager);
  if (watched == nullptr || watched->found.empty()) return;
  const CmEvent& event = watched->found.front();
  ADD_FAILURE() << "expected no event, found one of type "
                << static_cast<int>(event.type) << ": " << event.status;
}

}  // namespace rdma::conformance
