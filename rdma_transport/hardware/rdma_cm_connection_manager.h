// Connects QPs by rdma_cm(7): the system finds device, port and GID by the
// address's route, and InfiniBand's communication manager (IBTA vol. 1, chapter
// 12) carries the handshake.
//
// The life of a connection:
//
//   connecting                           accepting
//   rdma_resolve_addr  ADDR_RESOLVED
//   rdma_resolve_route ROUTE_RESOLVED
//   rdma_connect ------------------- REQ ---> CONNECT_REQUEST
//                                        QP to INIT, RTR, RTS
//   CONNECT_RESPONSE <-------------- REP ---- rdma_accept
//   QP to INIT, RTR, RTS
//   rdma_establish ----------------- RTU ---> ESTABLISHED
//
// The QP belongs to the user and to no rdma_cm_id: librdmacm would bring it up
// with an RNR timer of 655 ms and an acknowledgement timeout of 2 s. So the
// attributes come from rdma_init_qp_attr(3), ours replace some, and
// rdma_establish(3) says when we are there.
//
// rdma_cm repeats a lost REQ or REP after some 4 s, which nobody can change: an
// attempt on a bad network may need several seconds.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_CONNECTION_MANAGER_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_CONNECTION_MANAGER_H_

#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rdma_transport/hardware/deadlines.h"
#include "rdma_transport/hardware/farewells.h"
#include "rdma_transport/hardware/rdma_cm_handles.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

class RdmaCmConnectionManager final : public ConnectionManager {
 public:
  // REQUIRES: `device` outlives it. UNAVAILABLE: the kernel has no rdma_cm.
  static absl::StatusOr<std::unique_ptr<ConnectionManager>> Create(
      Device* device);
  ~RdmaCmConnectionManager() override;

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

  RdmaCmConnectionManager(Device* device, UniqueEventChannel channel,
                          std::unique_ptr<Deadlines> deadlines, UniqueFd epoll);

  // What an event means to the user, if anything.
  std::optional<CmEvent> OnEvent(const ReceivedCmEvent& event);
  std::optional<CmEvent> OnAddressResolved(Id* id);
  std::optional<CmEvent> OnRouteResolved(Id* id);
  std::optional<CmEvent> OnConnectResponse(Id* id,
                                           const ReceivedCmEvent& event);
  std::optional<CmEvent> OnConnectRequest(const ReceivedCmEvent& event);
  std::optional<CmEvent> OnEstablished(Id* id);
  // The connection, or what was to become one, is no more.
  std::optional<CmEvent> OnEnd(Id* id, const ReceivedCmEvent& event);

  std::optional<CmEvent> FailTimedOut(Id* id);
  CmEvent FailConnect(Id* id, absl::Status status);
  absl::Status StartConnecting(Id* id, absl::Duration timeout);
  int RemainingMilliseconds(Id* id) const;
  // OK, or why ids of another device are of no use here.
  absl::Status CheckDevice(const rdma_cm_id* id,
                           const SocketAddress& address) const;
  Id* Add(UniqueCmId handle, void* context);
  void BidFarewells();

  Device* const device_;
  const UniqueEventChannel channel_;
  const std::unique_ptr<Deadlines> deadlines_;
  const UniqueFd epoll_;
  std::unordered_map<CmId*, std::unique_ptr<Id>> ids_;
  Farewells farewells_;
  // Stands for them among the deadlines.
  const std::unique_ptr<CmId> farewell_timer_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_CONNECTION_MANAGER_H_
