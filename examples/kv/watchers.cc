#include "examples/kv/watchers.h"

#include <utility>

namespace kv {
namespace {

rpc::Status ServerEnds() {
  return rpc::Status(rpc::StatusCode::UNAVAILABLE,
                     "the server ends: watch again when it is back");
}

}  // namespace

Watchers::Watchers(Storage* storage) : storage_(*storage) {
  storage_.SetObserver(this);
}

Watchers::~Watchers() { storage_.SetObserver(nullptr); }

Watcher* Watchers::Start(const WatchRequest& request) {
  const auto watcher = std::make_shared<Watcher>(
      &storage_, request, [this](Watcher* done) { Remove(done); });
  bool ended = false;
  {
    absl::MutexLock lock(&mutex_);
    watchers_.emplace(watcher.get(), watcher);
    // A change that does not see this yet is seen by what lists present keys,
    // which takes the lock that it was made under.
    any_.store(true);
    ended = ended_;
  }
  if (ended) watcher->End(ServerEnds());
  watcher->Begin();
  return watcher.get();
}

void Watchers::EndAll() {
  std::vector<Pointer> watchers;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    for (const auto& [key, watcher] : watchers_) watchers.push_back(watcher);
  }
  for (const Pointer& watcher : watchers) watcher->End(ServerEnds());
}

void Watchers::OnChange(const StorageChange& change) {
  if (!any_.load(std::memory_order_relaxed)) return;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, watcher] : watchers_) {
    if (watcher->Add(change)) to_advance_.push_back(watcher);
  }
}

void Watchers::AfterChange() {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::vector<Pointer> watchers;
  {
    absl::MutexLock lock(&mutex_);
    watchers.swap(to_advance_);
  }
  for (const Pointer& watcher : watchers) watcher->Advance();
}

void Watchers::Remove(Watcher* watcher) {
  Pointer last;  // destroyed after the lock
  absl::MutexLock lock(&mutex_);
  const auto found = watchers_.find(watcher);
  last = std::move(found->second);
  watchers_.erase(found);
  if (watchers_.empty()) any_.store(false);
}

}  // namespace kv
