#include "rdma_transport/software/shm/control_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rdma::soft {
namespace {

// The kernel passes at most this many with a message; room for all of them, so
// that none is left behind where we cannot close it.
constexpr size_t kScmMaxFds = 253;

// Takes the descriptors of a received message over.
void TakeDescriptors(msghdr* header, ControlMessage* message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(header); control != nullptr;
       control = CMSG_NXTHDR(header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(fd));
      if (message->fd_count < kMaxControlFds) {
        message->fds[message->fd_count++].reset(fd);
      } else {
        const UniqueFd surplus(fd);
        message->truncated = true;
      }
    }
  }
}

}  // namespace

SendResult SendMessage(int socket, const void* data, size_t bytes,
                       std::initializer_list<int> fds) {
  iovec part = {const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxControlFds * sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fds.size() != 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.begin(), fds.size() * sizeof(int));
  }
  for (;;) {
    if (sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
      return SendResult::kSent;
    }
    switch (errno) {
      case EINTR:
        continue;
      case EAGAIN:
      case ENOBUFS:
      case ENOMEM:
      case ETOOMANYREFS:  // descriptors on their way that nobody took yet
        return SendResult::kFull;
      default:
        return SendResult::kBroken;
    }
  }
}

ReceiveResult ReceiveMessage(int socket, ControlMessage* message) {
  message->bytes = 0;
  message->fd_count = 0;
  message->truncated = false;
  message->descriptors_lost = false;
  for (UniqueFd& fd : message->fds) fd.reset();

  iovec part = {message->data.data(), message->data.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kScmMaxFds * sizeof(int))];
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  bool reset = false;
  for (;;) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    const ssize_t bytes =
        recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes >= 0) {
      message->bytes = static_cast<size_t>(bytes);
      break;
    }
    if (errno == EINTR) continue;
    // A peer that died with messages unread reports that first, and what it
    // sent after.
    if (errno == ECONNRESET && !std::exchange(reset, true)) continue;
    return errno == EAGAIN ? ReceiveResult::kNone : ReceiveResult::kClosed;
  }
  TakeDescriptors(&header, message);
  message->truncated |= (header.msg_flags & MSG_TRUNC) != 0;
  // There was room for all of them, but not in our table of descriptors.
  message->descriptors_lost = (header.msg_flags & MSG_CTRUNC) != 0;
  // Nobody of ours sends empty messages: this is the end.
  return message->bytes == 0 ? ReceiveResult::kClosed : ReceiveResult::kMessage;
}

}  // namespace rdma::soft
