// The connection manager of the software device: rdma_cm(7) over Unix-domain
// sockets.
//
// A listener is an abstract Unix socket named after its address. A client
// connects to it and both exchange one handshake message each (handshake.h);
// the socket then stays for the life of the connection, and its end is how a
// peer's death is seen, whatever it died of.
//
// Nothing here trusts a peer: with whom there is a connection at all is decided
// by SO_PEERCRED on both sides, what is no handshake closes its socket only,
// and handshakes that do not come are limited in number and time.
//
// Thread rule: one thread at a time. It may be another one than the QPs' once
// they are connected.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_CONNECTION_MANAGER_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_CONNECTION_MANAGER_H_

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/software/engine/device.h"
#include "rdma_transport/software/log.h"
#include "rdma_transport/software/shm/handshake.h"
#include "rdma_transport/software/shm/mapping_cache.h"
#include "rdma_transport/software/shm/shm_link.h"

namespace rdma::soft {

class ShmConnectionManager final : public ConnectionManager {
 public:
  // REQUIRES: `device` and `cache` outlive it.
  static absl::StatusOr<std::unique_ptr<ShmConnectionManager>> Create(
      EngineDevice* device, MappingCache* cache, uint64_t seed);
  ~ShmConnectionManager() override;

  int fd() const override { return epoll_.get(); }
  std::optional<CmEvent> GetEvent() override;
  bool tells_of_dead_peers() const override { return true; }
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

  ShmConnectionManager(EngineDevice* device, MappingCache* cache, uint64_t seed,
                       UniqueFd epoll, UniqueFd counter, UniqueFd timer);

  // --- What descriptors and time bring ---
  void ServeDescriptors();
  void OnListenerReadable(Id* listener);
  void OnHelloReadable(Id* id);
  void OnAnswerReadable(Id* id);
  void OnConnectionReadable(Id* id);
  void OnTimer();
  void OnDeadline(Id* id);

  // --- The client's side ---
  void TryToConnect(Id* id);
  void SendHello(Id* id);
  void OnAccepted(Id* id, const ControlMessage& message);
  void FailConnect(Id* id, absl::Status status);

  // --- The server's side ---
  void AddHalfOpen(Id* listener, UniqueFd socket);
  void EvictHalfOpen();
  void DestroyUntold(Id* listener);
  void RejectAndForget(Id* id, const std::string& reason);
  // Closes a socket that did not behave.
  void Drop(Id* id, std::string_view why);

  // --- Both ---
  // Whether the other side of the socket is a process of our user, where that
  // is asked for: PERMISSION_DENIED if not, with both users.
  absl::Status CheckPeersUser(const Id& id) const;
  HandshakeSetup MakeSetup(const QueuePair& qp,
                           const ConnectionParameters& parameters,
                           const SocketAddress& address) const;
  absl::StatusOr<ShmLink::Peer> MapPeer(const HandshakeSetup& setup,
                                        const ControlMessage& message) const;
  // Makes the link and moves the QP to RTS.
  absl::Status Establish(Id* id, QueuePair* qp, const HandshakeSetup& peer,
                         ShmLink::Peer mapped);
  void PushEvent(CmEvent event);
  void ClearCounterIfIdle();
  bool Watch(Id* id, uint32_t events);
  void Unwatch(Id* id);
  void SetDeadline(Id* id, int64_t deadline_ns);
  void ClearDeadline(Id* id);
  void ArmTimer();
  uint32_t Random() { return static_cast<uint32_t>(random_()); }

  EngineDevice* const device_;
  MappingCache* const cache_;
  std::mt19937_64 random_;
  const UniqueFd epoll_;
  const UniqueFd counter_;  // readable while events_ is not empty
  const UniqueFd timer_;
  UniqueFd spare_;  // given up to refuse a connection when descriptors run out
  RateLimitedLog log_;
  std::unordered_map<Id*, std::unique_ptr<Id>> ids_;
  std::list<Id*> half_open_;  // accepted, no hello yet; oldest first
  std::multimap<int64_t, Id*> deadlines_;
  std::deque<CmEvent> events_;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_CONNECTION_MANAGER_H_
