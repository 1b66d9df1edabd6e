// A client of the software device that speaks its protocol by hand, and keeps
// to it only where the test wants: it may send any bytes and descriptors as a
// handshake, and, once it is connected, write anything into the memory that the
// victim reads.
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_SOFTWARE_HOSTILE_CLIENT_H_
#define VERBENA_TESTS_SOFTWARE_HOSTILE_CLIENT_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/software/engine/device_segment.h"
#include "rdma_transport/software/engine/memfd.h"
#include "rdma_transport/software/shm/control_socket.h"
#include "rdma_transport/software/shm/handshake.h"
#include "rdma_transport/software/shm/link_segment.h"

namespace rdma::soft {

class HostileClient {
 public:
  static constexpr uint32_t kRingLines = 64;
  static constexpr uint32_t kQpNum = 4800;
  static_assert(FirstRingLineOf(kQpNum) == 0);

  // Connects its socket to the listener; sends nothing.
  explicit HostileClient(const SocketAddress& address);

  int socket() const { return socket_.get(); }
  SendResult Send(const void* data, size_t bytes,
                  std::initializer_list<int> fds = {});

  // A hello that is right in every field, and its descriptors.
  HandshakeSetup GoodSetup() const;
  int device_fd() const { return device_.fd(); }
  int link_fd() const { return link_.fd(); }
  SendResult SendHello(const HandshakeSetup& setup);

  // Waits for the server's answer, or its hanging up (null). `turn` lets the
  // server work.
  std::unique_ptr<ControlMessage> AwaitAnswer(
      const std::function<void()>& turn);

  // What the victim reads once it accepted.
  LinkControl& control();
  RingLine& line(uint32_t index);
  // Makes line 0 the beginning of a packet.
  void WritePacket(const Packet& packet, const void* payload = nullptr,
                   size_t bytes = 0);
  DeviceSegment& device() { return device_; }
  void HangUp() { socket_.reset(); }

 private:
  UniqueFd socket_;
  DeviceSegment device_;
  Segment link_;
};

}  // namespace rdma::soft

#endif  // VERBENA_TESTS_SOFTWARE_HOSTILE_CLIENT_H_
