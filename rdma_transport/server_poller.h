// A server's part on one device: listeners, the connections that came in
// through them, and the poller of their own.
//
// Thread rule: public functions as rpc::ServerTransport's of the same name; the
// rest belongs to the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_SERVER_POLLER_H_
#define VERBENA_RDMA_TRANSPORT_SERVER_POLLER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "rdma_transport/client_poller.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/connection_lifetime.h"
#include "rpc/transport.h"

namespace rdma {

class ServerPoller final : public ConnectionOwner, public CmEventHandler {
 public:
  // Opens options.device, which is a device's name or "soft". `number` tells
  // its calls from those of the server's other pollers (PollerOf);
  // `connections` is the count of all of them, and outlives it.
  static absl::StatusOr<std::unique_ptr<ServerPoller>> Create(
      const rpc::TransportOptions& options, uint32_t number,
      std::atomic<uint32_t>* connections);
  // REQUIRES: Drain has returned.
  ~ServerPoller() = default;

  // From now on the clients that come to this one's listeners are shared out
  // among `others`, which are of the same device, and itself. REQUIRES: they
  // are started before it, and drained after it.
  void ShareClientsWith(std::vector<ServerPoller*> others) {
    others_ = std::move(others);
  }
  // Connections, and those that may become some.
  uint32_t load() const { return load_.load(std::memory_order_relaxed); }
  // Returns the port.
  absl::StatusOr<int> Listen(const SocketAddress& address);
  // Undoes the last Listen, which was OK.
  void TakeBackListen();
  void Start(rpc::ServerSink* sink);
  bool Send(rpc::CallHandle call, rpc::OutgoingFrame&& frame);
  void Release(rpc::CallHandle call, uint64_t window_bytes, bool drained);
  void Cancel(rpc::CallHandle call, absl::Status reason);
  void Wait(rpc::Event& event) {
    poller_->poller->WaitAsGuest(event, Poller::Guest::kOfAllCalls);
  }
  void WakeWaiters() { poller_->poller->WakeWaiters(); }
  absl::StatusOr<rpc::Buffer> AllocateBuffer(size_t bytes);
  std::shared_ptr<rpc::GrowingMessage> GrowMessage(size_t bytes);
  std::string device() const;

  // Shutting down, in this order. First no further connection is accepted, and
  // the clients are asked for no further calls.
  void Refuse();
  // Returns once no call runs and no callback, or at the deadline.
  void WaitForCalls(absl::Time deadline);
  void CancelCalls();
  // Returns once every client has closed its connection, as they do when they
  // are asked for no further calls and have none left, or at the deadline.
  void WaitForClients(absl::Time deadline);
  // Closes connections that have sent everything; returns once there is none,
  // or at the deadline.
  void Flush(absl::Time deadline);
  // Closes what is left. No callback runs or will run once it returns.
  void Drain();

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

  ServerPoller(std::unique_ptr<ClientPoller> poller,
               const rpc::TransportOptions& options, uint32_t number,
               std::atomic<uint32_t>* connections);

  void OnCmEvent(CmEvent& event) override;
  void OnConnectRequest(CmEvent& event);
  ServerPoller& LeastLoaded();
  void HandOver(const CmEvent& event, ServerPoller& to);
  void AnswerReleased(CmEvent event, std::unique_ptr<CmId> released);
  void Answer(const CmEvent& event);
  bool TakeConnectionSlot();
  void Add(Connection* connection);
  std::vector<Connection*> Connections() const;
  void OnConnectionUp(Connection&) override {}
  void OnConnectionDown(Connection& connection, const absl::Status& why,
                        bool was_up) override;
  void OnGoAway(Connection&) override {}
  void OnCallGone(Connection&) override {}
  std::string_view PathOf(uint32_t) override { return {}; }
  const void* OnMethod(std::string_view path) override;
  void OnCallDeadline(Call& call) override;
  void OnCallRefused(Call& call) override;

  void SendElsewhere(rpc::CallHandle handle, rpc::OutgoingFrame& frame);
  void WaitFor(rpc::Event& event, absl::Time deadline,
               absl::FunctionRef<void()> arrange);

  const rpc::TransportOptions options_;
  const uint32_t number_;
  const std::unique_ptr<ClientPoller> poller_;
  std::atomic<uint32_t>* const connection_count_;

  std::vector<ServerPoller*> others_;
  bool started_ = false;  // Start comes before, and Shutdown's calls after

  // Connections, and those that may become some.
  std::atomic<uint32_t> load_{0};
  // It could not take the last one, for want of what connections need. Else it
  // would stay the one with the fewest, and get all that come.
  std::atomic<bool> full_{false};

  // The driver's.
  rpc::ServerSink* sink_ = nullptr;
  std::vector<CmId*> listeners_;
  bool refusing_ = false;
  rpc::Event* all_gone_ = nullptr;  // set when the last connection is
  // With null where nothing limits how long they last.
  absl::flat_hash_map<Connection*, std::unique_ptr<ConnectionLifetime>>
      connections_;
  absl::BitGen random_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_SERVER_POLLER_H_
