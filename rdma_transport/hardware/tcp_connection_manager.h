// Connects QPs over TCP: the second way, where rdma_cm is not to be had. Each
// end says over a TCP connection what the other must know (setup_message.h) and
// takes its QP through INIT, RTR and RTS by ibv_modify_qp(3). The TCP
// connection stays as long as the QPs' does, and its end is how the death of a
// peer is seen; TCP's keepalive finds a host that is gone.
//
//   connecting                     accepting
//   connect(2) ----------- SYN ---> accept(2)
//   request ---------------------->  kConnectRequest
//                                    QP to INIT, RTR, RTS
//   <------------- accept or reject  Accept, Reject
//   QP to INIT, RTR, RTS
//   ready ------------------------>  kEstablished
//
// Nothing that a peer sends is trusted: what is no set-up message closes its
// TCP connection only, and requests that do not come are limited in number and
// in time. Who may connect is the network's business (a firewall's), as it is
// with rdma_cm.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_CONNECTION_MANAGER_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_CONNECTION_MANAGER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rdma_transport/hardware/deadlines.h"
#include "rdma_transport/hardware/hardware_options.h"
#include "rdma_transport/hardware/setup_message.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

class TcpConnectionManager final : public ConnectionManager {
 public:
  // REQUIRES: `device` outlives it. RESOURCE_EXHAUSTED: no descriptor is left.
  static absl::StatusOr<std::unique_ptr<ConnectionManager>> Create(
      Device* device, const HardwareOptions& options);
  ~TcpConnectionManager() override;

  int fd() const override { return epoll_.get(); }
  std::optional<CmEvent> GetEvent() override;
  absl::StatusOr<CmId*> Listen(const SocketAddress& address, int backlog,
                               void* context) override;
  absl::StatusOr<CmId*> Connect(const SocketAddress& address, ibv_qp* qp,
                                const ConnectionParameters& parameters,
                                absl::Duration timeout, void* context) override;
  absl::Status Accept(CmId* id, ibv_qp* qp,
                      const ConnectionParameters& parameters) override;
  absl::Status Reject(CmId* id, std::string_view reason) override;
  absl::StatusOr<std::unique_ptr<CmId>> Release(CmId* id) override;
  absl::StatusOr<CmId*> Adopt(std::unique_ptr<CmId> id) override;
  void Disconnect(CmId* id) override;
  void Destroy(CmId* id) override;

 private:
  class Id;

  TcpConnectionManager(Device* device, const HardwareOptions& options,
                       std::unique_ptr<Deadlines> deadlines, UniqueFd epoll);

  // What a descriptor or a deadline brings; each is at most one event for the
  // user.
  std::optional<CmEvent> OnReady(Id* id);
  std::optional<CmEvent> OnDeadline(Id* id);

  // Connecting (tcp_cm_connect.cc).
  std::optional<CmEvent> OnTcpConnected(Id* id);
  absl::Status SendRequest(Id* id);
  std::optional<CmEvent> OnAnswer(Id* id);
  CmEvent OnAccepted(Id* id, const SetupMessage& answer);
  CmEvent FailConnect(Id* id, absl::Status status);

  // Accepting (tcp_cm_accept.cc).
  void OnListenerReady(Id* listener);
  UniqueFd TakeOneFromBacklog(Id* listener);
  void AddHalfOpen(Id* listener, UniqueFd socket);
  // Destroys an id whose peer sent something else, or nothing until the last
  // look.
  std::optional<CmEvent> OnRequest(Id* id, bool last_look);
  std::optional<CmEvent> OnClientReady(Id* id);
  void DestroyHalfOpenOf(const Id* listener);

  // Both.
  std::optional<CmEvent> OnHangUp(Id* id);
  Id* Add(UniqueFd socket, void* context);
  // Level-triggered; false and errno where the kernel refuses.
  bool Watch(Id* id, uint32_t events);
  void Unwatch(Id* id);
  uint32_t RandomPsn() { return random_() & 0xffffff; }

  Device* const device_;
  const HardwareOptions options_;
  const std::unique_ptr<Deadlines> deadlines_;
  const UniqueFd epoll_;
  // Given up for a moment to close what cannot be accepted for want of
  // descriptors, which would keep the listener's descriptor readable.
  UniqueFd spare_;
  std::mt19937 random_;
  std::unordered_map<CmId*, std::unique_ptr<Id>> ids_;
  std::list<Id*> half_open_;  // accepted by TCP, no request yet; oldest first
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_CONNECTION_MANAGER_H_
