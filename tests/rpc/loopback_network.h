// What connects loopback_transport's clients with its server: the calls, and
// the threads that deliver their frames.
#ifndef VERBENA_TESTS_RPC_LOOPBACK_NETWORK_H_
#define VERBENA_TESTS_RPC_LOOPBACK_NETWORK_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rpc/transport.h"
#include "tests/rpc/loopback_memory.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {

using Lock = std::unique_lock<std::mutex>;

// Something for a sink, in its order.
struct Delivery {
  enum Type { kFrame, kSent, kClosed };

  Type type = kFrame;
  absl::Time due;
  std::string header;
  IncomingFrame frame;
  CallOutcome outcome;
};

// First in, first out; keeps its memory.
template <class T>
class Fifo {
 public:
  bool empty() const { return next_ == items_.size(); }
  T& front() { return items_[next_]; }
  T& back() { return items_.back(); }
  void push_back(T item) { items_.push_back(std::move(item)); }
  T Pop() {
    T first = std::move(items_[next_++]);
    if (empty()) clear();
    return first;
  }
  void clear() {
    items_.clear();
    next_ = 0;
  }

 private:
  std::vector<T> items_;
  size_t next_ = 0;
};

// One side of a call. Its deliveries run one at a time.
struct LoopbackSide {
  CallSink* sink = nullptr;
  bool known = false;    // the sink's owner heard of the call
  bool running = false;  // some thread delivers, or is about to
  Fifo<Delivery> pending;
  bool ended = false;  // this side sent its last frame
};

struct LoopbackCall {
  uint64_t handle = 0;
  LoopbackSide client;
  LoopbackSide server;
  bool closed = false;
  bool waiting = false;  // for a server (wait_for_ready)
  std::atomic<bool> cut_off{false};
  uint32_t method = 0;
  absl::Time deadline;
  std::optional<Delivery> parked;  // the first frame, while `waiting`
  ServerTransport* server_transport = nullptr;
  ServerSink* server_sink = nullptr;

  bool Idle() const {
    return closed && !client.running && !server.running &&
           client.pending.empty() && server.pending.empty();
  }
};

using CallPtr = std::shared_ptr<LoopbackCall>;

class LoopbackNetwork::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(const LoopbackOptions& options)
      : options_(options),
        memory_(std::make_shared<LoopbackMemory>(options.memory_budget_bytes)) {
    for (int i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this] { Work(); });
    }
    timer_ = std::thread([this] { KeepTime(); });
  }

  void Stop();

  const LoopbackOptions& options() const { return options_; }
  LoopbackMemory& memory() { return *memory_; }

  // ---- Methods ----

  uint32_t RegisterMethod(std::string_view path);

  // ---- The server ----

  bool SetServer(ServerTransport* transport, ServerSink* sink);
  void Shutdown(ServerTransport* transport, absl::Time deadline);

  // ---- Calls ----

  CallHandle StartCall(const CallOptions& options, OutgoingFrame frame,
                       CallSink* sink);

  // From one side to the other.
  void Send(CallHandle handle, bool from_server, OutgoingFrame frame);
  void Cancel(CallHandle handle, bool from_server, absl::Status reason);
  void DropAll();

  // ---- State ----

  void SetLane(uint32_t lane);
  void set_unreachable(bool unreachable);
  ConnectivityState GetState(bool try_to_connect);
  bool WaitForStateChange(ConnectivityState last, absl::Time deadline);
  size_t open_calls();
  void WaitUntilIdle();
  void Replace(bool response, const RawFrame& frame);

 private:
  struct Method {
    std::string path;
    std::optional<uint32_t> asked_lane = {};
    const void* id = nullptr;
  };

  CallPtr NewCall();
  CallPtr Find(CallHandle handle);
  Delivery ToDelivery(OutgoingFrame frame, std::optional<RawFrame>& replace);

  // The call reaches the server.
  void Admit(const CallPtr& call, Delivery first);

  // Ends the call. `initiator` hears of it at once, the others after what is
  // under way to them.
  void Close(const CallPtr& call, absl::Status status,
             const LoopbackSide* initiator, bool may_have_run = true);
  void Drive(Lock& lock, const CallPtr& call);
  void Drive(Lock& lock, const std::vector<CallPtr>& calls);
  void DriveSide(Lock& lock, const CallPtr& call, LoopbackSide& side);

  // Delivers what is due. REQUIRES: side.running.
  void Deliver(Lock& lock, const CallPtr& call, LoopbackSide& side);

  // True where the server does not know the method. `opens`: it is the call's
  // first frame.
  bool DeliverOne(LoopbackCall& call, LoopbackSide& side, Delivery& delivery,
                  bool opens);
  CallSink* DeliverCall(LoopbackCall& call, IncomingFrame& frame);
  void Forget(const CallPtr& call);

  template <class Condition>
  bool WaitUntil(Lock& lock, absl::Time deadline, Condition condition) {
    while (!condition()) {
      if (deadline == absl::InfiniteFuture()) {
        changed_.wait(lock);
      } else if (changed_.wait_until(lock, absl::ToChronoTime(deadline)) ==
                 std::cv_status::timeout) {
        return condition();
      }
    }
    return true;
  }
  void WaitForCalls(Lock& lock, ServerTransport* transport,
                    absl::Time deadline);
  ConnectivityState State() const;
  void Work();
  void KeepTime();

  const LoopbackOptions options_;
  const std::shared_ptr<LoopbackMemory> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  ServerTransport* server_ = nullptr;
  ServerSink* server_sink_ = nullptr;
  bool unreachable_ = false;
  uint32_t lane_ = 0;
  bool tried_ = false;
  uint64_t last_handle_ = 0;
  std::deque<Method> methods_;
  std::map<uint64_t, CallPtr> calls_;
  std::vector<std::map<uint64_t, CallPtr>::node_type> spare_nodes_;
  std::vector<CallPtr> spares_;
  Fifo<std::pair<CallPtr, LoopbackSide*>> ready_;
  std::multimap<absl::Time, CallPtr> timers_;
  std::optional<RawFrame> replace_response_;
  std::optional<RawFrame> replace_request_;
  std::vector<std::thread> threads_;
  std::thread timer_;
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_LOOPBACK_NETWORK_H_
