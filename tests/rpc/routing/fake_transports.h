// Transports that do what a test says, and the channel's transport on top of
// them.
//
//   FakeTransports fakes(2);
//   auto routing = fakes.Route({.policy = "round_robin"});
//   FakeSink sink;
//   routing->StartCall({}, Message("hello"), &sink);
//   fakes[0].SetState(ConnectivityState::kReady);
//   fakes[0].WaitForCall(0).sink->OnFrame(...);
//
// Thread rule: any thread, but a call's sink, which is for one at a time.
#ifndef VERBENA_TESTS_RPC_ROUTING_FAKE_TRANSPORTS_H_
#define VERBENA_TESTS_RPC_ROUTING_FAKE_TRANSPORTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rpc/routing/routing_options.h"
#include "rpc/transport.h"

namespace rpc::routing {

// A frame that was sent, with the texts of what it held.
struct SentFrame {
  std::string header;
  std::string message;
  uint64_t attachment_bytes = 0;
  bool end = false;

  bool operator==(const SentFrame&) const = default;
};

// An attempt, as its transport knows it. What it holds is the test's to look at
// once nothing changes it any more.
struct FakeCall {
  CallOptions options;
  std::vector<SentFrame> frames;
  CallSink* sink = nullptr;
  std::vector<absl::Status> cancelled;
  uint64_t released_bytes = 0;
};

// One address. While it is alive, transports to it may come and go.
class FakeTransport {
 public:
  // Tells its listeners.
  void SetState(ConnectivityState state, const std::string& why = "");
  // How often GetState asked to connect.
  int connects() const;
  // The call of this number, counted from 0, once it and so many frames of it
  // have come.
  FakeCall& WaitForCall(size_t number, size_t frames = 1);
  size_t calls() const;
  // Transports to it that there are.
  int clients() const { return clients_; }
  // Runs within the next StartCall, before it returns.
  void OnNextStart(std::function<void(FakeCall&)> run);
  // Send says so, from now on.
  void SetSentAtOnce() { sent_at_once_ = true; }

 private:
  friend class FakeClient;

  mutable absl::Mutex mutex_;
  ConnectivityState state_ ABSL_GUARDED_BY(mutex_) = ConnectivityState::kIdle;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  int connects_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<StateListener*> listeners_ ABSL_GUARDED_BY(mutex_);
  std::deque<FakeCall> calls_ ABSL_GUARDED_BY(mutex_);
  std::function<void(FakeCall&)> on_next_start_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> sent_at_once_ = false;
  std::atomic<int> clients_ = 0;
};

class FakeTransports {
 public:
  explicit FakeTransports(size_t count);
  ~FakeTransports();

  FakeTransport& operator[](size_t index) { return transports_[index]; }
  // "fake://0,1"
  std::string address() const;
  // REQUIRES: the options are in order.
  std::unique_ptr<ClientTransport> Route(const RoutingOptions& options = {});
  // To a name, "fake://0.name:1"; `resolve_name` says what it stands for.
  // The first fake is where threads wait.
  std::unique_ptr<ClientTransport> RouteName(
      const RoutingOptions& options,
      const std::function<absl::StatusOr<std::vector<std::string>>(
          std::string_view)>& resolve_name);

 private:
  std::deque<FakeTransport> transports_;
};

// A user's end of a call.
class FakeSink final : public CallSink {
 public:
  void OnFrame(IncomingFrame& frame) override;
  void OnPeer(std::string_view peer) override;
  void OnSent() override;
  void OnClosed(const CallOutcome& outcome) override;

  // Blocks until the call is closed.
  CallOutcome WaitForEnd();
  bool is_over() const;
  int sent() const;
  // What came: messages, or the codes of frames with `end`.
  std::vector<std::string> messages() const;
  std::vector<uint32_t> codes() const;
  // Of the call, and empty until it is told.
  std::string peer() const;

 private:
  mutable absl::Mutex mutex_;
  int sent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> codes_ ABSL_GUARDED_BY(mutex_);
  std::string peer_ ABSL_GUARDED_BY(mutex_);
  int ends_ ABSL_GUARDED_BY(mutex_) = 0;
  CallOutcome outcome_ ABSL_GUARDED_BY(mutex_);
};

// A message of a text, which must live until it is sent.
OutgoingFrame Message(std::string_view text, bool end = true);

// What a server does with an attempt.
void Answer(FakeCall& call, const std::string& message);
void Fail(FakeCall& call, uint32_t code, const std::string& header = "");
void Break(FakeCall& call, const absl::Status& why, bool may_have_run);

}  // namespace rpc::routing

#endif  // VERBENA_TESTS_RPC_ROUTING_FAKE_TRANSPORTS_H_
