#include "rpc/transport.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rpc {
namespace {

uint32_t* FutexWord(std::atomic<uint32_t>& word) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return reinterpret_cast<uint32_t*>(&word);
}

std::vector<TransportFactory*>& Factories() {
  static auto* const factories = new std::vector<TransportFactory*>();
  return *factories;
}

}  // namespace

constinit const absl::Time kNoDeadline = absl::InfiniteFuture();

void Event::Set() {
  // After the exchange the waiter may be gone; a wake of a stale address is
  // harmless (futex(2): spurious wake-ups are allowed for).
  uint32_t* word = FutexWord(state_);
  if (state_.exchange(kSet, std::memory_order_seq_cst) == kWaiting) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
}

bool Event::WaitUntil(absl::Time deadline) {
  uint32_t seen = kClear;
  state_.compare_exchange_strong(seen, kWaiting, std::memory_order_acq_rel);
  while (!is_set()) {
    timespec timeout;
    timespec* timeout_or_null = nullptr;
    if (deadline != absl::InfiniteFuture()) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return is_set();
      timeout = absl::ToTimespec(left);
      timeout_or_null = &timeout;
    }
    syscall(SYS_futex, FutexWord(state_), FUTEX_WAIT_PRIVATE, kWaiting,
            timeout_or_null, nullptr, 0);
  }
  return true;
}

void Event::PrepareSleep() {
  uint32_t seen = kClear;
  state_.compare_exchange_strong(seen, kWaiting, std::memory_order_seq_cst);
}

void Event::Sleep() {
  syscall(SYS_futex, FutexWord(state_), FUTEX_WAIT_PRIVATE, kWaiting, nullptr,
          nullptr, 0);
  CancelSleep();
}

void Event::CancelSleep() {
  uint32_t seen = kWaiting;
  state_.compare_exchange_strong(seen, kClear, std::memory_order_acq_rel);
}

void Event::Nudge() {
  uint32_t seen = kWaiting;
  if (state_.compare_exchange_strong(seen, kClear, std::memory_order_acq_rel)) {
    syscall(SYS_futex, FutexWord(state_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
            nullptr, 0);
  }
}

void TransportFactory::Register(TransportFactory* factory) {
  Factories().push_back(factory);
}

absl::StatusOr<TransportFactory*> TransportFactory::ForAddress(
    std::string_view address) {
  const size_t colon = address.find("://");
  if (Factories().empty()) {
    return absl::FailedPreconditionError(
        "no transport is linked into this program: add "
        "//rdma_transport to the binary's deps");
  }
  if (colon == std::string_view::npos) return Factories().front();
  const std::string_view scheme = address.substr(0, colon);
  for (TransportFactory* factory : Factories()) {
    if (factory->scheme() == scheme) return factory;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no transport for scheme '", std::string(scheme), "' is linked; known: ",
      absl::StrJoin(Factories(), ", ",
                    [](std::string* out, TransportFactory* factory) {
                      absl::StrAppend(out, std::string(factory->scheme()));
                    })));
}

}  // namespace rpc
