#include "examples/kv/watcher.h"

#include <utility>

#include "examples/kv/limits.h"
#include "examples/kv/value_field.h"

namespace kv {
namespace {

// Keys that are looked for at once, by a reaction, which must not take long.
constexpr uint32_t kPageSize = 100;

}  // namespace

Watcher::Watcher(Storage* storage, const WatchRequest& request,
                 std::function<void(Watcher*)> on_done)
    : storage_(*storage),
      request_(request),
      on_done_(std::move(on_done)),
      last_page_(!request.present_first()) {}

bool Watcher::Add(const StorageChange& change) {
  if (!change.key.starts_with(request_.prefix())) return false;
  absl::MutexLock lock(&mutex_);
  // What was lost comes behind what waits: no change may come between.
  if (lost_ > 0 || waiting_.size() == kMaxWaitingChanges) {
    ++lost_;
  } else {
    waiting_.push_back({.key = std::string(change.key),
                        .deleted = change.deleted,
                        .version = change.version,
                        .value_bytes = change.value_bytes});
  }
  return !writing_ && !std::exchange(advancing_, true);
}

void Watcher::Advance() {
  {
    absl::MutexLock lock(&mutex_);
    advancing_ = false;
    if (std::exchange(writing_, true)) return;
  }
  WriteNext();
}

void Watcher::End(const rpc::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = status;
  }
  Advance();
}

void Watcher::OnWriteDone(bool ok) {
  if (!ok) {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = rpc::Status::CANCELLED;
  }
  WriteNext();
}

void Watcher::OnDone() {
  // Which may destroy this object, and with it the function.
  const std::function<void(Watcher*)> on_done = std::move(on_done_);
  on_done(this);
}

void Watcher::WriteNext() {
  std::optional<rpc::Status> end;
  {
    absl::MutexLock lock(&mutex_);
    end = end_;
    if (!end.has_value() && synced_ && !TakeChange()) {
      writing_ = false;
      return;
    }
  }
  // There is a writer for good: this is the last that is done.
  if (end.has_value()) return Finish(*std::move(end));
  if (!synced_) TakePresent();
  rpc::BufferChain value = AddValue();
  StartWrite(&event_, rpc::WriteOptions().set_attachment(std::move(value)));
}

bool Watcher::TakeChange() {
  event_.Clear();
  if (!waiting_.empty()) {
    Change& change = waiting_.front();
    event_.set_kind(change.deleted ? WatchEvent::DELETED : WatchEvent::PUT);
    event_.set_key(std::move(change.key));
    event_.set_version(change.version);
    event_.set_value_bytes(change.value_bytes);
    waiting_.pop_front();
    return true;
  }
  if (lost_ == 0) return false;
  event_.set_kind(WatchEvent::LOST);
  event_.set_lost(std::exchange(lost_, 0));
  return true;
}

void Watcher::TakePresent() {
  event_.Clear();
  if (next_entry_ == page_.entries.size() && !last_page_) {
    // The token is the storage's own, so that it is never wrong.
    page_ = *storage_.List(request_.prefix(), kPageSize, page_.next_page_token);
    next_entry_ = 0;
    last_page_ = page_.next_page_token.empty();
  }
  if (next_entry_ == page_.entries.size()) {
    event_.set_kind(WatchEvent::SYNCED);
    synced_ = true;
    page_ = ListPage();
    return;
  }
  ListEntry& entry = page_.entries[next_entry_++];
  event_.set_kind(WatchEvent::PUT);
  event_.set_key(std::move(entry.key));
  event_.set_version(entry.version);
  event_.set_value_bytes(entry.value_bytes);
}

rpc::BufferChain Watcher::AddValue() {
  const uint64_t most = request_.max_value_bytes();
  if (event_.kind() != WatchEvent::PUT || most == 0 ||
      event_.value_bytes() > most) {
    return {};
  }
  std::optional<StoredValue> value = storage_.Get(event_.key());
  if (!value.has_value() || value->version != event_.version()) return {};
  return SetValue(std::move(value->bytes), &event_);
}

}  // namespace kv
