// A connection of the software device in the making, or made: what
// ShmConnectionManager knows of it. For its own files only.
//
// Thread rule: as the manager.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_CM_ID_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_CM_ID_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/software/shm/handshake.h"
#include "rdma_transport/software/shm/shm_connection_manager.h"
#include "rdma_transport/software/shm/shm_link.h"

namespace rdma::soft {

class ShmConnectionManager::Id final : public CmId {
 public:
  enum class State {
    kListening,
    kConnecting,  // the listener's backlog is full
    kHelloSent,
    kHalfOpen,   // accepted; the hello has not come
    kRequested,  // the user was asked
    kConnected,
    kClosed,
  };

  SocketAddress local_address() const override { return local; }
  SocketAddress peer_address() const override { return peer; }

  // The socket, also once the link has it.
  int fd() const { return link != nullptr ? link->fd() : socket.get(); }

  State state = State::kClosed;
  SocketAddress local;
  SocketAddress peer;
  UniqueFd socket;
  bool watched = false;
  int64_t connect_deadline_ns = 0;
  std::optional<std::multimap<int64_t, Id*>::iterator> deadline;
  std::optional<std::list<Id*>::iterator> half_open;

  Id* listener = nullptr;
  uint32_t qp_num = 0;
  ConnectionParameters parameters;          // ours
  std::optional<ShmLink::Local> segment;    // client: sent with the hello
  HandshakeSetup hello;                     // server: the client's
  std::optional<ShmLink::Peer> hello_peer;  // server: the client's, mapped
  std::shared_ptr<ShmLink> link;
};

// What failed calls and peers' offers turn into, on either side.
absl::Status CmErrnoStatus(std::string_view call);
void SetOfferedReads(const HandshakeSetup& peer, CmEvent* event);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_CM_ID_H_
