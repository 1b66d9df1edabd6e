// One call of Watch: changes that wait in a queue, and the reactor that writes
// them one after the other. A watch takes no thread while it waits. See
// kv.proto for what is told.
//
// The queue is bounded: when the client reads too slowly, changes are counted
// and not kept, until all that waited is written, and then LOST. What waits is
// keys and versions; values are looked up when they are written, so that a slow
// client keeps none alive.
//
// Thread rule: any thread. One at a time is the writer (writing_), which alone
// touches what is not guarded.
#ifndef VERBENA_EXAMPLES_KV_WATCHER_H_
#define VERBENA_EXAMPLES_KV_WATCHER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "examples/kv/kv.rpc.pb.h"
#include "examples/kv/storage.h"
#include "rpc/rpc.h"

namespace kv {

class Watcher final : public rpc::ServerWriteReactor<WatchEvent> {
 public:
  // `on_done` is called once, when the call is over.
  Watcher(Storage* storage, const WatchRequest& request,
          std::function<void(Watcher*)> on_done);

  // Begins to write; once, when changes are being added.
  void Begin() { WriteNext(); }

  // A change was made. True: Advance is to be called. Does not wait.
  bool Add(const StorageChange& change);
  // Writes what waits, where nothing is being written.
  void Advance();
  // Ends the call, once what is being written is written.
  void End(const rpc::Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(rpc::Status::CANCELLED); }
  void OnDone() override;

 private:
  struct Change {
    std::string key;
    bool deleted;
    uint64_t version;
    uint64_t value_bytes;
  };

  // ---- The writer's.

  // Starts a write or ends the call, or stops being the writer.
  void WriteNext();
  // Sets event_. False: nothing waits.
  bool TakeChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets event_: to a key that is there, or to SYNCED.
  void TakePresent();
  // What is asked for beside event_'s key.
  rpc::BufferChain AddValue();

  Storage& storage_;
  const WatchRequest request_;
  std::function<void(Watcher*)> on_done_;

  WatchEvent event_;
  bool synced_ = false;
  ListPage page_;  // of present keys
  size_t next_entry_ = 0;
  bool last_page_;

  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = true;     // there is a writer
  bool advancing_ ABSL_GUARDED_BY(mutex_) = false;  // Advance will be called
  std::deque<Change> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;  // after what waits
  std::optional<rpc::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_WATCHER_H_
