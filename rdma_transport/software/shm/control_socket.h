// Messages with file descriptors over a Unix-domain SOCK_SEQPACKET socket.
//
//   SendMessage(socket, bytes, size, {fd});
//   ControlMessage message;
//   switch (ReceiveMessage(socket, &message)) ...
//
// Thread rule: none; the kernel keeps messages whole.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_CONTROL_SOCKET_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_CONTROL_SOCKET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "rdma_transport/provider/unique_fd.h"

namespace rdma::soft {

inline constexpr size_t kMaxControlBytes = 1024;
inline constexpr size_t kMaxControlFds = 2;

enum class SendResult {
  kSent,
  kFull,    // no room now: try again later
  kBroken,  // the other side is gone
};

// Never blocks, never raises SIGPIPE.
SendResult SendMessage(int socket, const void* data, size_t bytes,
                       std::initializer_list<int> fds);

struct ControlMessage {
  alignas(8) std::array<std::byte, kMaxControlBytes> data;
  size_t bytes = 0;
  std::array<UniqueFd, kMaxControlFds> fds;
  size_t fd_count = 0;
  // It was longer, or had more descriptors; those are closed.
  bool truncated = false;
  // Descriptors of it were lost, because this process may have no more of them.
  bool descriptors_lost = false;
};

enum class ReceiveResult {
  kMessage,
  kNone,
  kClosed,  // the other side hung up, and all it sent was received
};

// Never blocks. Received descriptors close on exec.
ReceiveResult ReceiveMessage(int socket, ControlMessage* message);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_CONTROL_SOCKET_H_
