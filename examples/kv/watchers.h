// The calls of Watch that are under way: hears of every change of a storage,
// and passes it to those that it concerns.
//
//   kv::Watchers watchers(&storage);
//   return watchers.Start(request);   // in the handler
//   watchers.EndAll();                // before the server shuts down
//
// Where nobody watches, a change costs one load more. Where somebody does,
// changes take one lock after the other, and the time to compare the prefix of
// each watch; a write is started by the thread that made the change, after it
// left the storage's lock, and never waited for.
//
// Thread rule: any thread.
#ifndef VERBENA_EXAMPLES_KV_WATCHERS_H_
#define VERBENA_EXAMPLES_KV_WATCHERS_H_

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "examples/kv/storage.h"
#include "examples/kv/watcher.h"

namespace kv {

class Watchers final : private StorageObserver {
 public:
  // `storage`, which must outlive this object, must not change while it is made
  // or destroyed.
  explicit Watchers(Storage* storage);
  // REQUIRES: every watch is over.
  ~Watchers();
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  // The reactor of a new call; it owns itself.
  Watcher* Start(const WatchRequest& request);

  // Ends all of them with UNAVAILABLE, and those that come from now on.
  void EndAll();

 private:
  using Pointer = std::shared_ptr<Watcher>;

  // StorageObserver
  void OnChange(const StorageChange& change) override;
  void AfterChange() override;

  void Remove(Watcher* watcher);

  Storage& storage_;
  std::atomic<bool> any_{false};
  absl::Mutex mutex_;
  std::map<Watcher*, Pointer> watchers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Pointer> to_advance_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_WATCHERS_H_
