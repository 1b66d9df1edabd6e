// A server, or a client that only makes load, in a process of its own: for
// tests that kill or stop it.
//
//   PeerProcess server = PeerProcess::Serve();
//   Client client(server.address());
//   server.Kill();
//
// The program is tests/e2e/peer; it ends when the test does. Thread rule: one
// thread at a time, which must not end before the object (the kernel ends a
// child with the thread that made it).
#ifndef VERBENA_TESTS_E2E_PEER_PROCESS_H_
#define VERBENA_TESTS_E2E_PEER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/e2e/endpoints.h"

namespace e2e {

class PeerProcess {
 public:
  // Serves once this returns. Port 0: a free one.
  static PeerProcess Serve(const Arguments& arguments = {},
                           const std::string& address = ServerUri());
  // Calls Consume, or Produce, with attachments of `bytes`, again and again;
  // has begun once this returns.
  static PeerProcess Upload(const std::string& address, uint64_t bytes);
  static PeerProcess Download(const std::string& address, uint64_t bytes);

  PeerProcess(PeerProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), line_(std::move(other.line_)) {}
  PeerProcess& operator=(PeerProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(line_, other.line_);
    return *this;
  }
  ~PeerProcess() { Kill(); }

  // Of a server that runs: "rdma://ADDRESS:PORT". Else, why it does not.
  const std::string& address() const { return line_; }
  bool ok() const { return line_.starts_with("rdma://"); }

  // SIGKILL; returns when the process is gone. No effect where it is already.
  void Kill();
  // What all its threads have used of CPUs so far. REQUIRES: it runs.
  absl::Duration CpuTime() const;

  // SIGSTOP and SIGCONT, as Kill. Stop returns when no thread of it runs any
  // more.
  void Stop();
  void Continue();

 private:
  explicit PeerProcess(const std::vector<std::string>& words);

  pid_t pid_ = -1;
  std::string line_;  // what it said
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_PEER_PROCESS_H_
