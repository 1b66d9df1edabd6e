// The interceptors of one call.
//
// Thread rule: Add and then AllAdded by one thread, when others may know of the
// call already; to them there are none before that. All else any thread.
#ifndef VERBENA_RPC_INTERNAL_INTERCEPTORS_H_
#define VERBENA_RPC_INTERNAL_INTERCEPTORS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "rpc/interceptor.h"

namespace rpc::internal {

class Interceptors {
 public:
  // Takes `interceptor` over; null is none. `place`: its factory's, counted
  // from 0.
  void Add(experimental::Interceptor* interceptor, size_t place);
  void AllAdded() {
    size_.store(entries_.size(), std::memory_order_release);
    reach_.store(entries_.size(), std::memory_order_release);
  }

  size_t size() const { return size_.load(std::memory_order_acquire); }
  experimental::Interceptor& at(size_t index) { return *entries_[index].one; }
  size_t place(size_t index) const { return entries_[index].place; }

  // How many see the call's operations: none yet, all, or those up to the one
  // that hijacked it.
  size_t reach() const { return reach_.load(std::memory_order_acquire); }
  bool is_hijacked() const {
    return is_hijacked_.load(std::memory_order_acquire);
  }
  // Once.
  void SetHijacker(size_t index);

 private:
  struct Entry {
    std::unique_ptr<experimental::Interceptor> one;
    size_t place;
  };

  std::vector<Entry> entries_;
  std::atomic<size_t> size_{0};
  std::atomic<size_t> reach_{0};
  std::atomic<bool> is_hijacked_{false};
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_INTERCEPTORS_H_
