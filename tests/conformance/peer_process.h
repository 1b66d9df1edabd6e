// A peer in a process of its own, to be killed.
//
//   PeerProcess peer(PeerProcess::Role::kSend);  // before any device is opened
//   ... connect to peer.address(), then
//   peer.Kill();
//
// The peer opens its own device, listens, accepts one connection and does what
// its role says until it dies. Its offer of memory is the private data of its
// answer.
//
// The process is forked, so a peer must be made before its parent opens a
// device: a child that holds the parent's descriptors would hide its death, and
// a device is of no use in a child of fork (ibv_fork_init(3)).
//
// Thread rule: one thread. The destructor kills and reaps.
#ifndef VERBENA_TESTS_CONFORMANCE_PEER_PROCESS_H_
#define VERBENA_TESTS_CONFORMANCE_PEER_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "rdma_transport/provider/provider.h"

namespace rdma::conformance {

// Memory that a peer offers, or asks for; the private data of a connection.
struct MemoryOffer {
  uint64_t addr = 0;
  uint32_t rkey = 0;
  uint32_t bytes = 0;

  std::string ToPrivateData() const;
  static MemoryOffer FromPrivateData(const std::string& data);
};

class PeerProcess {
 public:
  enum class Role {
    kIdle,   // takes messages and says nothing
    kServe,  // offers memory, filled with seed kFill, to READs and WRITEs
    kSend,   // sends messages for ever, their number in the immediate
    kRead,   // READs for ever from what the parent offers
    kWrite,  // WRITEs for ever to what the parent offers
  };
  static constexpr uint32_t kFill = 42;
  static constexpr size_t kMessageBytes = 700;

  // REQUIRES: this process has opened no device.
  explicit PeerProcess(Role role);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  // Where it listens. Port 0 if the peer failed to start.
  SocketAddress address() const { return address_; }

  // SIGKILL, and gone when this returns.
  void Kill();

 private:
  pid_t pid_ = -1;
  SocketAddress address_;
};

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_PEER_PROCESS_H_
