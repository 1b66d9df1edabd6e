// A client's way to one address: at most one connection, opened by the first
// call, closed when idle, opened again with backoff.
//
// Channels to the same address with the same options share an endpoint
// (ConnectionPool). Connectivity follows gRPC's states: a call in kIdle starts
// connecting and waits; a failed attempt is kTransientFailure, in which calls
// that are not wait_for_ready fail at once with the reason, until the backoff
// has passed. See gRPC's "Connectivity Semantics" and "Connection Backoff".
//
// Thread rule: public functions from any thread; the rest belongs to the
// poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_ENDPOINT_H_
#define VERBENA_RDMA_TRANSPORT_ENDPOINT_H_

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/address.h"
#include "rdma_transport/client_poller.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/owned_frame.h"
#include "rpc/transport.h"

namespace rdma {

class Endpoint final : public ConnectionOwner,
                       public std::enable_shared_from_this<Endpoint> {
 public:
  Endpoint(std::shared_ptr<ClientPoller> poller, HostPort address,
           const rpc::TransportOptions& options);
  // REQUIRES: Shutdown was called and has returned.
  ~Endpoint();

  uint32_t RegisterMethod(std::string_view path);
  rpc::CallHandle StartCall(const rpc::CallOptions& options,
                            rpc::OutgoingFrame&& frame, rpc::CallSink* sink);
  bool Send(rpc::CallHandle call, rpc::OutgoingFrame&& frame);
  void Release(rpc::CallHandle call, uint64_t window_bytes, bool drained);
  void Cancel(rpc::CallHandle call, absl::Status reason);
  void Wait(rpc::Event& event) { poller_->poller->Wait(event); }
  void WaitAsGuest(rpc::Event& event) {
    poller_->poller->WaitAsGuest(event, Poller::Guest::kOfSomeCalls);
  }
  void EndVisits() { poller_->poller->EndVisits(); }
  const void* driven() const { return poller_->poller.get(); }
  void WakeWaiters() { poller_->poller->WakeWaiters(); }
  absl::StatusOr<rpc::Buffer> AllocateBuffer(size_t bytes);
  std::shared_ptr<rpc::GrowingMessage> GrowMessage(size_t bytes);
  rpc::ConnectivityState GetState(bool try_to_connect);
  bool WaitForStateChange(rpc::ConnectivityState last_observed,
                          absl::Time deadline);
  void ResetBackoff();
  void AddStateListener(rpc::StateListener* listener);
  void RemoveStateListener(rpc::StateListener* listener);
  std::string device() const;
  std::string peer() const;
  // Closes the connection and all calls.
  void Shutdown();

 private:
  // A call that has no connection yet.
  struct PendingCall {
    Call* call;
    std::unique_ptr<OwnedFrame> frame;
  };

  class RetryTimer final : public Timer {
   public:
    explicit RetryTimer(Endpoint* endpoint) : endpoint_(endpoint) {}

   private:
    void OnTimer() override { endpoint_->OnBackoffOver(); }
    Endpoint* const endpoint_;
  };
  class IdleTimer final : public Timer {
   public:
    explicit IdleTimer(Endpoint* endpoint) : endpoint_(endpoint) {}

   private:
    void OnTimer() override { endpoint_->OnIdleCheck(); }
    Endpoint* const endpoint_;
  };

  // ConnectionOwner.
  void OnConnectionUp(Connection& connection) override;
  void OnConnectionDown(Connection& connection, const absl::Status& why,
                        bool was_up) override;
  void OnGoAway(Connection& connection) override;
  void OnCallGone(Connection& connection) override;
  std::string_view PathOf(uint32_t method) override;
  const void* OnMethod(std::string_view) override { return nullptr; }
  void OnCallDeadline(Call& call) override;
  void OnCallRefused(Call&) override {}

  rpc::CallHandle StartElsewhere(const rpc::CallOptions& options,
                                 rpc::OutgoingFrame& frame,
                                 rpc::CallSink* sink);
  void Start(Call& call, const rpc::CallOptions& options,
             rpc::OutgoingFrame& frame, rpc::CallSink* sink);
  void StartWhereDriven(Call& call, const rpc::CallOptions& options,
                        rpc::OutgoingFrame& frame, rpc::CallSink* sink);
  bool SetDeadline(Call& call);
  void StartLater(Call& call, rpc::OutgoingFrame& frame);
  void CancelCall(Call& call, const absl::Status& reason);
  void SendPending();
  // Whoever waits for a connection that is up waits for a slot.
  void AwaitSlots();
  void FailPending(const absl::Status& why);

  void StartConnecting();
  void OnResolved(absl::StatusOr<std::vector<SocketAddress>> addresses);
  void ConnectNext();
  void ConnectingFailed();
  void OnBackoffOver();
  void ScheduleIdleCheck();
  void OnIdleCheck();
  absl::Duration NextBackoff();
  void SetState(rpc::ConnectivityState state);

  const std::shared_ptr<ClientPoller> poller_;
  const HostPort address_;
  const std::string name_;  // "rdma://HOST:PORT"
  const rpc::TransportOptions options_;

  absl::Mutex methods_mutex_;
  absl::flat_hash_map<std::string, uint32_t> method_numbers_
      ABSL_GUARDED_BY(methods_mutex_);
  // By number; a deque, so that a path stays where it is.
  std::deque<std::string> method_paths_ ABSL_GUARDED_BY(methods_mutex_);

  std::atomic<rpc::ConnectivityState> state_{rpc::ConnectivityState::kIdle};
  mutable absl::Mutex state_mutex_;  // for those who wait for it
  absl::Status state_cause_ ABSL_GUARDED_BY(state_mutex_);
  std::vector<rpc::StateListener*> state_listeners_
      ABSL_GUARDED_BY(state_mutex_);
  std::string peer_ ABSL_GUARDED_BY(state_mutex_);  // of the last connection

  // The driver's.
  Connection* connection_ = nullptr;     // connecting or up, taking calls
  std::vector<Connection*> leaving_;     // up, with calls to finish
  std::vector<std::string_view> paths_;  // of method_paths_, as needed
  std::deque<PendingCall> pending_;
  bool sending_pending_ = false;  // SendPending is on the stack
  std::vector<SocketAddress> candidates_;
  size_t next_candidate_ = 0;
  bool resolving_ = false;
  bool shut_down_ = false;
  absl::Status last_failure_;
  absl::Duration backoff_;
  absl::Time attempt_started_;
  absl::BitGen random_;
  uint64_t calls_opened_ = 0;
  uint64_t calls_at_idle_check_ = 0;
  int idle_checks_ = 0;
  RetryTimer retry_timer_{this};
  IdleTimer idle_timer_{this};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_ENDPOINT_H_
