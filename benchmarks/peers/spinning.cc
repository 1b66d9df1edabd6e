#include "benchmarks/peers/spinning.h"

#include <poll.h>
#include <sys/wait.h>

namespace benchmarks {

bool StopWatch::IsReadable() const {
  pollfd fd = {.fd = stop_fd_, .events = POLLIN};
  return poll(&fd, 1, 0) > 0;
}

// Leaves the child to PeerMain, which waits for it.
bool ChildWatch::HasExited() {
  siginfo_t info = {};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

}  // namespace benchmarks
