// A link on shared memory: two rings, one for each direction, and a Unix socket
// beside them that wakes sleepers, passes descriptors of arenas, and whose end
// is the end of the connection.
//
// Each side writes its own segment (link_segment.h) and reads the peer's; what
// is read is checked, because the peer may write anything there.
//
// Thread rule: as Link has it.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_LINK_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_LINK_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/software/engine/arena.h"
#include "rdma_transport/software/engine/device_segment.h"
#include "rdma_transport/software/engine/link.h"
#include "rdma_transport/software/engine/memfd.h"
#include "rdma_transport/software/shm/control_socket.h"
#include "rdma_transport/software/shm/link_messages.h"
#include "rdma_transport/software/shm/link_segment.h"
#include "rdma_transport/software/shm/mapping_cache.h"

namespace rdma::soft {

class ShmLink final : public Link {
 public:
  struct Local {
    Segment segment;  // of LinkSegmentBytes(ring_lines)
    uint32_t ring_lines = 0;
    uint32_t qp_num = 0;

    // For a QP that admits `access` (ibv_access_flags): a peer that is
    // connected first may use it at once. RESOURCE_EXHAUSTED: no memory.
    static absl::StatusOr<Local> Create(uint32_t qp_num, uint32_t ring_lines,
                                        uint32_t access);
  };
  // What the peer's handshake said; checked by whoever decoded it.
  struct Peer {
    std::shared_ptr<const PeerMapping> device;   // of kDeviceSegmentBytes
    std::shared_ptr<const PeerMapping> segment;  // of LinkSegmentBytes
    uint32_t ring_lines = 0;
    uint32_t qp_num = 0;
    uint32_t pd = 0;
    uint32_t send_cq_line = 0;
    uint32_t recv_cq_line = 0;
  };

  // `asymmetric`: both sides use AsymmetricFence. REQUIRES: `arenas` and
  // `cache` outlive the link.
  ShmLink(UniqueFd socket, Local local, Peer peer, bool asymmetric,
          const ArenaTable* arenas, MappingCache* cache);

  uint64_t Send(const Packet& packet, const ConstBytes* parts,
                int part_count) override;
  void Wake(bool solicited) override;
  void WakeReader() override;
  uint64_t acknowledged() override;
  void WantAcknowledgement(uint64_t position) override;

  PeekResult Peek(Packet* packet) override;
  void Read(uint32_t offset, void* out, uint32_t bytes) override;
  void Consume() override;
  void Acknowledge() override;
  bool PeerClosed() const override;

  KeyView peer_keys() const override { return peer_keys_; }
  uint32_t peer_access() const override;
  Access Resolve(uint32_t arena, uint64_t offset, uint64_t bytes, bool writable,
                 std::byte** address) override;
  void PublishWriting(uint32_t key) override;

  bool Announce(uint32_t arena) override;
  void Withdraw(uint32_t arena) override;
  uint32_t PeersWritingKey() const override;
  void SetAccess(uint32_t access) override;

  bool IsPeerGone() const override;
  void MarkClosed() override;
  void HangUp() override;
  int fd() const override { return socket_.get(); }
  void Service() override;
  const char* violation() const override { return violation_; }

 private:
  // Arena ids below this are looked up without a lock once they are announced.
  static constexpr uint32_t kFastArenas = 256;

  bool HasRoomFor(const Packet& packet);
  void Ring(Bell* bell, uint32_t armed);
  void SendRing();

  std::shared_ptr<const PeerMapping> FindArena(uint32_t arena);
  void OnMessage(const ControlMessage& received);
  void OnAnnouncement(uint32_t arena, int fd);
  // Hangs up on a peer that broke the protocol.
  void EndForCause(const std::string& what);

  // REQUIRES: control_mutex_ is held.
  SendResult SendControl(const LinkMessage& message);
  void FlushControl();

  LinkControl* const own_;
  const LinkControl* const theirs_;
  uint64_t tx_consumed_ = 0;  // as last seen
  uint32_t rx_packet_lines_ = 0;
  uint32_t last_arena_ = 0;
  std::shared_ptr<const PeerMapping> last_mapping_;
  std::unordered_map<uint32_t, std::shared_ptr<const PeerMapping>> arenas_;

  const UniqueFd socket_;
  const Local local_;
  const Peer peer_;
  const KeyView peer_keys_;
  const ArenaTable* const own_arenas_;
  MappingCache* const cache_;
  const char* violation_ = "";
  bool heard_out_ = false;  // nothing more comes from the socket, or is heard

  // We hung up while the peer was there.
  std::atomic<bool> hung_up_on_peer_{false};
  std::atomic<uint64_t> announced_bits_[kFastArenas / 64] = {};
  std::mutex control_mutex_;
  std::unordered_set<uint32_t> announced_;  // guarded by control_mutex_
  std::deque<LinkMessage> pending_;         // guarded by control_mutex_
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_SHM_LINK_H_
