// One call of a transport, either side, and the table that names calls by
// handles.
//
// A Call is plain state; Connection and the transports change it. Thread rule:
// the poller's driver, but for `cut_off`, which a handler may read at any time.
#ifndef VERBENA_RDMA_TRANSPORT_CALL_H_
#define VERBENA_RDMA_TRANSPORT_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rdma_transport/frame.h"
#include "rdma_transport/held_frames.h"
#include "rdma_transport/owned_frame.h"
#include "rdma_transport/timer_wheel.h"
#include "rpc/buffer.h"
#include "rpc/transport.h"

namespace rdma {

class Connection;
struct Call;

// Who acts on what befalls a call: its endpoint.
class CallOwner {
 public:
  virtual void OnCallDeadline(Call& call) = 0;
  // Server: nobody took the call.
  virtual void OnCallRefused(Call& call) = 0;

 protected:
  ~CallOwner() = default;
};

// A method as a server's connection knows it.
struct ServerMethod {
  std::string path;
  const void* token;  // rpc::ServerSink::OnMethod's
};

// What is set before anybody looks, each time that the call is used.
struct CallIdentity {
  rpc::CallHandle handle;
  CallOwner* owner = nullptr;
  // Of its connection, once it has one.
  uint32_t slot = 0;
  uint32_t sequence = 0;
  absl::Time deadline = rpc::kNoDeadline;
  const ServerMethod* method = nullptr;  // server
  // Client: parameters that a call keeps until it is sent.
  uint32_t method_index = 0;
  rpc::WaitForReady wait_for_ready = rpc::WaitForReady::kDefault;
  Call* next_ready = nullptr;  // of the ready ones, or of the free
};

// What a call begins with anew each time; see Call. Next to each other, what is
// zero is cleared in few steps.
struct CallState {
  rpc::CallHandle alias;             // or none; see CallTable::SetForGuests
  rpc::CallSink* sink = nullptr;     // null on a server until OnCall returned
  Connection* connection = nullptr;  // null: not sent yet, or cut off
  Connection* pinned = nullptr;      // server: kept while OnCall uses its names
  // Client: what is left until the deadline, when it is about to be sent; 0: no
  // deadline.
  uint64_t timeout_us = 0;
  // Server: the request was offered and not yet said done. The key to
  // invalidate with whatever says so is done_rkey (0: none).
  uint32_t done_rkey = 0;
  bool owes_done = false;

  bool live = false;  // CallTable's
  bool is_client = false;
  bool quick_sink = false;

  // Protocol state.
  bool open_sent = false;  // client: the peer may know the call
  bool sent_end = false;
  bool received_end = false;
  bool is_arriving = false;  // delivered, or about to be, and not there in full

  bool was_held_back = false;     // a frame waited for send_window
  bool window_is_wanted = false;  // the peer's did

  // Delivery. While `busy`, a callback runs, perhaps on a thread that no longer
  // drives; what happens meanwhile waits in the inbox.
  bool busy = false;
  bool queued = false;  // on the poller's ready list
  // `outcome` is decided; the last callback is due or done.
  bool closed = false;
  uint32_t sent_count = 0;  // OnSent callbacks that are due

  // Flow control of a stream, in bytes; see docs/flow_control.md. What this
  // side may send and what the peer may; at or below 0: nothing.
  int64_t send_window = kStreamWindow;
  int64_t receive_window = kStreamWindow;
  int64_t window_size = kStreamWindow;  // of what the peer may send
};

struct Call final : public Timer, public CallIdentity, public CallState {
  HeldFrames inbox;  // almost always empty
  // Frames that wait for send_window, or for a connection; null: none.
  std::unique_ptr<std::deque<OwnedFrame>> held_back;
  rpc::CallOutcome outcome;
  std::atomic<bool> cut_off{false};

  // Keeps a frame in held_back.
  void HoldBack(rpc::OutgoingFrame& frame);

 private:
  friend class CallTable;

  void OnTimer() override { owner->OnCallDeadline(*this); }

  // Makes it as good as new.
  void Reset() {
    static constexpr CallState kFresh;
    static_cast<CallState&>(*this) = kFresh;
    outcome.may_have_run = true;
    // Of a call that ended in order, the rest is so.
    if (scheduled() || !inbox.empty() || held_back != nullptr ||
        !outcome.status.ok()) [[unlikely]] {
      DropRest();
    }
  }
  void DropRest();
};

// Calls by handle. Entries are reused, handles are not: a stale handle finds
// nothing.
//
// A thread that does not drive cannot create a call, but may have to name one
// at once: it takes an alias (any thread), and the driver creates the call
// under it.
class CallTable {
 public:
  // A server has one table for each of its pollers, by number.
  static constexpr uint32_t kMaxPollers = rpc::TransportOptions::kMaxPollers;

  // Handles tell their table's number; REQUIRES: less than kMaxPollers.
  explicit CallTable(uint32_t number = 0) : number_(number) {}
  ~CallTable() = default;

  CallTable(const CallTable&) = delete;
  CallTable& operator=(const CallTable&) = delete;

  static rpc::CallHandle NewAlias();
  // Of a handle that a table made; no alias.
  static uint32_t PollerNumberOf(rpc::CallHandle handle) {
    return static_cast<uint32_t>(handle.value) >> kIndexBits;
  }

  // A fresh call with its handle set.
  Call* Create() {
    if (free_ == nullptr) [[unlikely]]
      AddFree();
    Call* const call = free_;
    free_ = call->next_ready;
    call->live = true;
    ++live_;
    return call;
  }
  // The same, also found by `alias`.
  Call* Create(rpc::CallHandle alias);
  // Nobody but threads in Poller::WaitAsGuest hears of the call.
  void SetForGuests(Call* call);
  // Null for a call that is over.
  Call* Find(rpc::CallHandle handle) {
    if ((handle.value & kAliasBit) != 0) handle = HandleOf(handle);
    const auto index = static_cast<uint32_t>(handle.value) & kIndexMask;
    if (index >= calls_.size()) return nullptr;
    Call* const call = calls_[index].get();
    // Nobody has the handle that a call will have when it is used again.
    return call->handle == handle ? call : nullptr;
  }
  // The last one to go is the first one to come: its memory is still cached.
  void Destroy(Call* call) {
    if (call->alias) [[unlikely]]
      Forget(call->alias);
    call->Reset();
    call->handle = HandleAfter(call->handle);
    call->next_ready = free_;
    free_ = call;
    --live_;
  }
  size_t live() const { return live_; }
  // Those of them that are for guests. Any thread.
  size_t live_for_guests() const {
    return live_for_guests_.load(std::memory_order_relaxed);
  }

  // For shutting down: every live call. REQUIRES: none is created meanwhile.
  template <typename Function>
  void ForEach(Function&& function) {
    for (const std::unique_ptr<Call>& call : calls_) {
      if (call->live) function(*call);
    }
  }

 private:
  // Aliases have the top bit, generations do not.
  static constexpr uint64_t kAliasBit = uint64_t{1} << 63;
  static constexpr uint64_t kOneGeneration = uint64_t{1} << 32;
  // A handle is, from its low end, the call's index, its table's number, and
  // the generation, which differs each time that the call is used again.
  static constexpr int kIndexBits = 28;
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  static_assert(kMaxPollers == 1u << (32 - kIndexBits));

  // Of the next generation; that one is never 0.
  static rpc::CallHandle HandleAfter(rpc::CallHandle handle) {
    const uint64_t next = handle.value + kOneGeneration;
    if ((next & kAliasBit) != 0) [[unlikely]]
      return {(next & ~kAliasBit) + kOneGeneration};
    return {next};
  }

  void AddFree();
  // That of the call, or one that finds nothing.
  rpc::CallHandle HandleOf(rpc::CallHandle alias) const;
  // What is beside the handle.
  void Forget(rpc::CallHandle alias);

  const uint32_t number_;
  // As many as there were ever at once, by index.
  std::vector<std::unique_ptr<Call>> calls_;
  Call* free_ = nullptr;  // those that are not live, by next_ready
  absl::flat_hash_map<uint64_t, rpc::CallHandle> aliases_;
  size_t live_ = 0;
  std::atomic<size_t> live_for_guests_{0};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CALL_H_
