// The seam between the transport and RDMA devices.
//
// libibverbs' hot calls (ibv_post_send, ibv_poll_cq, ibv_post_srq_recv,
// ibv_req_notify_cq, ibv_alloc_mw, ...) are inline functions that jump through
// `context->ops`. A provider therefore only hands out `ibv_context`, `ibv_qp`,
// `ibv_cq`, ... whose ops are a driver's: the transport's hot path is plain
// verbs on every device, with no virtual call of our own. What libibverbs
// exports as functions instead (the control path) goes through `Device`, and
// connecting goes through `ConnectionManager`.
//
//   absl::StatusOr<std::unique_ptr<Device>> device = provider->Open("soft0");
//   ibv_pd* pd = (*device)->AllocPd();
//   ibv_cq* cq = (*device)->CreateCq(256, nullptr, channel);
//   auto cm = (*device)->CreateConnectionManager();
//   (*cm)->Connect(address, qp, params, nullptr);
//   ... ibv_post_send(qp, &wr, &bad), ibv_poll_cq(cq, 16, wc) ...
//
// Errors: functions named after a verbs call return what that call returns,
// with errno as its man page says (a null pointer and errno, or an errno
// value). The RAII types of rdma_transport/verbs/ turn that into absl::Status.
//
// Threads: a Device's functions may be called from any thread. Objects made of
// a device opened with `single_threaded_queues` follow the rule of an
// ibv_alloc_td(3) thread domain instead: a CQ, and the QPs and SRQs that use
// it, are used by one thread at a time. PDs, MRs, and MWs stay thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_PROVIDER_PROVIDER_H_
#define VERBENA_RDMA_TRANSPORT_PROVIDER_PROVIDER_H_

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rdma {

// An IPv4 or IPv6 address with a port.
struct SocketAddress {
  sockaddr_storage storage = {};

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  socklen_t length() const {
    return storage.ss_family == AF_INET6 ? sizeof(sockaddr_in6)
                                         : sizeof(sockaddr_in);
  }
  int family() const { return storage.ss_family; }
  uint16_t port() const;
  void set_port(uint16_t port);
  bool is_any() const;  // 0.0.0.0 or [::]

  // "127.0.0.1:50051", "[::1]:50051".
  std::string ToString() const;
  // A numeric address without brackets ("127.0.0.1", "::1").
  static absl::StatusOr<SocketAddress> FromNumeric(std::string_view host,
                                                   uint16_t port);
};

// What each side says when it connects or accepts; rdma_conn_param of
// rdma_connect(3) and rdma_accept(3), and what ibv_modify_qp(3) takes besides.
// What a device cannot do is clamped to what it can.
//
// With the defaults a lost packet stalls its connection for 67 ms, and requests
// to a peer that is gone fail after (retry_count + 1) timeouts: 0.5 s. Devices
// may take up to four times as long (IBTA vol. 1, 9.7.6.1.3): 0.3 s and 2 s.
struct ConnectionParameters {
  // At most kMaxConnectPrivateData / kMaxAcceptPrivateData bytes. The peer sees
  // it zero-padded to some length on some devices: carry your own length.
  std::string private_data;
  uint8_t responder_resources = 16;  // READs this side serves at once
  uint8_t initiator_depth = 16;      // READs this side issues at once
  uint8_t rnr_retry_count = 6;       // of the peer's sends; 7 is for ever
  // Of this side's requests; the smaller of both sides' holds. At most 6 is
  // used on hardware: some devices take 7 as for ever.
  uint8_t retry_count = 6;
  uint8_t min_rnr_timer = 12;  // IBTA encoding; 12 is 0.64 ms; never 0

  // The rest has no meaning where there is no wire; the software device ignores
  // it.

  // How long this side waits for an acknowledgement before it sends again:
  // 4.096 us * 2^timeout, 1 to 31. 14 is 67 ms. 0, which is for ever in verbs,
  // takes the default.
  uint8_t timeout = 14;
  // Of the IP packets of RoCE v2 (the DSCP is its upper six bits), or of the
  // GRH on InfiniBand. 0 leaves it to the connecting side, the route and the
  // system's configuration.
  uint8_t traffic_class = 0;
  // The longest packet, if the path's is not to be used; never more than that.
  // Both sides are to be given the same: rdma_cm does not tell the peer.
  std::optional<ibv_mtu> mtu;
};
inline constexpr size_t kMaxConnectPrivateData = 56;
inline constexpr size_t kMaxAcceptPrivateData = 196;
inline constexpr size_t kMaxRejectPrivateData = 148;

// A connection in the making, or made; an rdma_cm_id. Owned by its
// ConnectionManager until Destroy.
class CmId {
 public:
  virtual ~CmId() = default;

  void* context = nullptr;  // the user's

  virtual SocketAddress local_address() const = 0;
  virtual SocketAddress peer_address() const = 0;
};

struct CmEvent {
  enum class Type {
    // `id` is new, made from the listening id `listener`; the user answers with
    // Accept or Reject, and owns `id` (Destroy) from now on. private_data is
    // the
    // client's.
    kConnectRequest,
    // The connection is up: the QP is in RTS. On the connecting side
    // private_data is the server's.
    kEstablished,
    // Connecting failed: `status` says why and what to do; `id` stays to be
    // destroyed. For a rejection by the peer's user, `rejected` is set and
    // private_data is the reason it gave.
    kConnectFailed,
    // The peer went away, or closed. The QP is in ERR or soon will be after
    // Disconnect; outstanding work requests flush.
    kDisconnected,
    // The listening id can take no more connections.
    kListenFailed,
  };

  Type type;
  CmId* id = nullptr;
  CmId* listener = nullptr;
  absl::Status status;
  bool rejected = false;
  std::string private_data;
  // What the peer offered (kConnectRequest, kEstablished): its initiator_depth
  // bounds our responder_resources, and the other way round.
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
};

// Brings RC QPs up and reports when they go down: rdma_cm(7) with an event
// channel. Thread rule: one thread at a time.
class ConnectionManager {
 public:
  // Destroys what is left of its ids. REQUIRES: the QPs given to it are
  // destroyed or no longer used.
  virtual ~ConnectionManager() = default;

  // Readable (poll, epoll; level-triggered) when GetEvent may have an event.
  virtual int fd() const = 0;
  // Does what there is to do without blocking and returns the next event, or
  // nothing. rdma_get_cm_event(3); events need no acknowledgement.
  virtual std::optional<CmEvent> GetEvent() = 0;

  // Whether kDisconnected comes of every peer that is gone, and its host with
  // it, though nothing is sent to it.
  virtual bool tells_of_dead_peers() const { return false; }

  // Listens on `address`; port 0 picks one (see CmId::local_address).
  // ALREADY_EXISTS: in use, and by whom where that is known.
  virtual absl::StatusOr<CmId*> Listen(const SocketAddress& address,
                                       int backlog, void* context) = 0;

  // Starts connecting `qp` (in RESET, of this device) to `address`.
  // kEstablished or kConnectFailed follows, the latter at `timeout` at the
  // latest. The manager moves the QP through INIT and RTR to RTS.
  virtual absl::StatusOr<CmId*> Connect(const SocketAddress& address,
                                        ibv_qp* qp,
                                        const ConnectionParameters& parameters,
                                        absl::Duration timeout,
                                        void* context) = 0;

  // Accepts a kConnectRequest with `qp` (in RESET). Receives may complete
  // before kEstablished.
  virtual absl::Status Accept(CmId* id, ibv_qp* qp,
                              const ConnectionParameters& parameters) = 0;
  // Declines it and says why. The id stays to be destroyed.
  virtual absl::Status Reject(CmId* id, std::string_view reason) = 0;

  // Hands the id of a kConnectRequest that has no answer yet to another manager
  // of this device: Release here, Adopt there. In between it is the caller's,
  // who may destroy it, which declines the request. rdma_migrate_id(3). Where
  // Release fails the id stays what it was; where Adopt fails it is destroyed.
  virtual absl::StatusOr<std::unique_ptr<CmId>> Release(CmId* id) = 0;
  virtual absl::StatusOr<CmId*> Adopt(std::unique_ptr<CmId> id) = 0;

  // Ends a connection: the QP goes to ERR and flushes; the peer sees
  // kDisconnected, this side no further event of `id`. Once more does nothing.
  // rdma_disconnect(3). REQUIRES: the first time, the QP still exists.
  virtual void Disconnect(CmId* id) = 0;
  // Frees the id; no event names it any more. A QP that it connected must be
  // destroyed before.
  virtual void Destroy(CmId* id) = 0;
};

// What memory is to be used for; a device may place it accordingly.
enum class MemoryUse {
  kLocal,           // this process writes, peers at most read (RDMA READ)
  kRemoteWritable,  // peers write too (RDMA WRITE, atomics)
  kJointReads,      // see Device::reads_jointly
};

// One opened device: ibv_context and the control verbs.
class Device {
 public:
  // ibv_close_device(3). REQUIRES: everything made of it is destroyed.
  virtual ~Device() = default;

  virtual ibv_context* context() = 0;
  virtual std::string_view name() const = 0;
  virtual const ibv_device_attr& attributes() const = 0;
  // The most that a QP can have of ibv_qp_cap::max_inline_data.
  virtual uint32_t max_inline_data() const = 0;
  // How much of that is worth asking for: each entry of a NIC's send queue has
  // room for all of it.
  static constexpr uint32_t kUsefulInlineOnNic = 512;
  virtual uint32_t useful_inline_data() const {
    return std::min(max_inline_data(), kUsefulInlineOnNic);
  }
  // The bits of ibv_wc.wc_flags of which one marks a receive that invalidated a
  // key. IBV_WC_WITH_INV; a device with another habit says which.
  virtual unsigned int invalidation_flags() const { return IBV_WC_WITH_INV; }
  // Whether it is CPUs of this host that read what this side sends: what was
  // sent is in their caches then.
  virtual bool cpus_read() const { return false; }
  // The bit of ibv_send_wr.send_flags that has an RDMA READ go past the caches,
  // which pays for more than they hold. 0 where no CPU copies.
  virtual unsigned int past_caches_flag() const { return 0; }
  // The lkey with which an RDMA READ stores into any memory of this process,
  // registered or not: what the Reserved L_Key (IBTA vol. 1, base memory
  // management extensions) is to kernels. Once the QP is in ERR nothing more is
  // stored. 0 where there is none: a NIC needs memory that is pinned.
  virtual uint32_t reserved_lkey() const { return 0; }

  // Whether the CPU of the peer that an RDMA READ reads from may copy a part of
  // it, where it polls anyway, as long as the READ goes to memory of
  // MemoryUse::kJointReads. To the peer of the QP that was the first to READ
  // into a piece of such memory all of it is writable from then on; others get
  // it for reading. A peer that goes wrong can spoil what it sent, also after
  // that was received. Several such READs that are outstanding may look at the
  // peer's memory in any order; a READ or atomic of another kind begins when
  // those before it are over.
  virtual bool reads_jointly() const { return false; }
  // Whether a CQ that has nothing to poll has work that goes on with each poll
  // all the same: a CPU copies.
  virtual bool is_at_work(ibv_cq*) const { return false; }

  // Memory fit for RegMr on this device: page-aligned, zeroed, its pages
  // present. Null and errno (ENOMEM) where there is none. Memory from elsewhere
  // can be registered on hardware only; the software device says EOPNOTSUPP.
  virtual void* AllocateMemory(size_t bytes, MemoryUse use) = 0;
  // REQUIRES: no MR covers it.
  virtual void FreeMemory(void* memory, size_t bytes) = 0;

  virtual ibv_pd* AllocPd() = 0;
  virtual int DeallocPd(ibv_pd* pd) = 0;

  virtual ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access) = 0;
  virtual int DeregMr(ibv_mr* mr) = 0;

  virtual ibv_comp_channel* CreateCompChannel() = 0;
  virtual int DestroyCompChannel(ibv_comp_channel* channel) = 0;
  // Does not block: -1 and EAGAIN where there is no event.
  virtual int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                         void** cq_context) = 0;
  virtual void AckCqEvents(ibv_cq* cq, unsigned int count) = 0;

  virtual ibv_cq* CreateCq(int cqe, void* cq_context, ibv_comp_channel* channel,
                           int comp_vector) = 0;
  // ibv_resize_cq(3): at least `cqe` entries; completions in it stay.
  virtual int ResizeCq(ibv_cq* cq, int cqe) = 0;
  virtual int DestroyCq(ibv_cq* cq) = 0;

  virtual ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) = 0;
  virtual int ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int mask) = 0;
  virtual int QuerySrq(ibv_srq* srq, ibv_srq_attr* attr) = 0;
  virtual int DestroySrq(ibv_srq* srq) = 0;

  virtual ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) = 0;
  virtual int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) = 0;
  virtual int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
                      ibv_qp_init_attr* init) = 0;
  virtual int DestroyQp(ibv_qp* qp) = 0;

  // context()->async_fd is readable when there is one. Does not block: -1 and
  // EAGAIN where there is none. ibv_get_async_event(3).
  virtual int GetAsyncEvent(ibv_async_event* event) = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) = 0;

  virtual absl::StatusOr<std::unique_ptr<ConnectionManager>>
  CreateConnectionManager() = 0;
};

struct DeviceOptions {
  // See "Threads" above.
  bool single_threaded_queues = false;
  // Software device: peers of other users may connect, and be connected to.
  bool allow_other_users = false;
};

// What an address is to be used for.
enum class AddressUse { kConnect, kListen };

// A kind of device: hardware, software, simulated. Thread-safe.
class Provider {
 public:
  virtual ~Provider() = default;

  virtual std::string_view name() const = 0;  // "software"
  virtual std::vector<std::string> ListDevices() = 0;
  // NOT_FOUND where there is no such device, and names those there are.
  virtual absl::StatusOr<std::unique_ptr<Device>> Open(
      std::string_view device_name, const DeviceOptions& options) = 0;

  // The name of the device that reaches `address`, or that answers for it where
  // it is to be listened on (0.0.0.0 and [::] included). May block, for as long
  // as `timeout`, while the system looks for the way to a remote address; who
  // is there is not asked.
  //   NOT_FOUND: no device does, and why, and what to do about it.
  //   UNAVAILABLE, DEADLINE_EXCEEDED: the way could not be found out.
  virtual absl::StatusOr<std::string> DeviceFor(const SocketAddress& address,
                                                AddressUse use,
                                                absl::Duration timeout) = 0;
};

// Linux's soft-RoCE (rdma_rxe) has this vendor's number:
// drivers/infiniband/sw/rxe/rxe_param.h.
inline bool IsSoftRoce(const ibv_device_attr& attributes) {
  return attributes.vendor_id == 0xffffff;
}

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_PROVIDER_PROVIDER_H_
