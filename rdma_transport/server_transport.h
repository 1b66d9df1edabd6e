// rpc::ServerTransport: listeners, the connections that came in, and a poller
// of their own.
//
// Thread rule: public functions as rpc/transport.h says; the rest belongs to
// the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_SERVER_TRANSPORT_H_
#define VERBENA_RDMA_TRANSPORT_SERVER_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/client_poller.h"
#include "rdma_transport/connection.h"
#include "rpc/transport.h"

namespace rdma {

class ServerTransport final : public rpc::ServerTransport,
                              public ConnectionOwner,
                              public CmEventHandler {
 public:
  static absl::StatusOr<std::unique_ptr<ServerTransport>> Create(
      const rpc::TransportOptions& options);
  // Shuts down at once where that was not done.
  ~ServerTransport() override;

  const rpc::Limits& limits() const override { return limits_; }
  absl::StatusOr<int> AddListeningPort(std::string_view address) override;
  absl::Status Start(rpc::ServerSink* sink) override;
  void Send(rpc::CallHandle call, rpc::OutgoingFrame frame) override;
  void Cancel(rpc::CallHandle call, absl::Status reason) override;
  absl::StatusOr<rpc::Buffer> AllocateBuffer(size_t bytes) override;
  void Shutdown(absl::Time deadline) override;
  std::string device() const override;

 private:
  // Ends the wait for running calls at the deadline.
  class DrainTimer final : public Timer {
   public:
    DrainTimer(Poller* poller, rpc::Event* event)
        : poller_(poller), event_(event) {}

   private:
    void OnTimer() override { poller_->SetEvent(*event_); }
    Poller* const poller_;
    rpc::Event* const event_;
  };

  ServerTransport(std::unique_ptr<ClientPoller> poller,
                  const rpc::TransportOptions& options);

  void OnCmEvent(CmEvent& event) override;
  void OnConnectRequest(const CmEvent& event);
  void OnConnectionUp(Connection&) override {}
  void OnConnectionDown(Connection& connection, const absl::Status& why,
                        bool was_up) override;
  void OnGoAway(Connection&) override {}
  void OnCallGone(Connection&) override {}
  const void* OnMethod(std::string_view path) override;
  void OnCallDeadline(Call& call) override;
  void OnCallRefused(Call& call) override;

  void StopListening();
  void WaitFor(rpc::Event& event, absl::Time deadline,
               absl::FunctionRef<void()> arrange);
  void WaitForCalls(absl::Time deadline);
  void WaitForConnections(absl::Time deadline);
  void CancelCalls();

  const rpc::TransportOptions options_;
  const rpc::Limits limits_;
  const std::unique_ptr<ClientPoller> poller_;

  absl::Mutex shutdown_mutex_;
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;

  // The driver's.
  rpc::ServerSink* sink_ = nullptr;
  std::vector<CmId*> listeners_;
  rpc::Event* all_gone_ = nullptr;  // set when the last connection is
  absl::flat_hash_set<Connection*> connections_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_SERVER_TRANSPORT_H_
