#include "tests/e2e/peer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace e2e {
namespace {

// From the test's working directory, the root of its runfiles.
constexpr char kProgram[] = "tests/e2e/peer";

void Check(bool ok, const char* call) {
  if (ok) return;
  std::perror(call);
  std::abort();
}

// In the child, between fork and exec: other threads may have held any lock, so
// that system calls are all there is.
[[noreturn]] void Execute(char* const* words, pid_t parent, int out_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  ::dup2(out_fd, STDOUT_FILENO);
  ::execv(kProgram, words);
  ::_exit(127);
}

// Up to the first line's end.
std::string ReadLine(int fd) {
  std::string line;
  char c;
  while (true) {
    const ssize_t count = ::read(fd, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || c == '\n') return line;
    line.push_back(c);
  }
}

}  // namespace

PeerProcess::PeerProcess(const std::vector<std::string>& words) {
  std::vector<char*> arguments = {const_cast<char*>(kProgram)};
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  int out[2];
  Check(::pipe2(out, O_CLOEXEC) == 0, "pipe2");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  Check(pid_ >= 0, "fork");
  if (pid_ == 0) Execute(arguments.data(), parent, out[1]);
  ::close(out[1]);
  line_ = ReadLine(out[0]);
  ::close(out[0]);
}

PeerProcess PeerProcess::Serve(const Arguments& arguments,
                               const std::string& address) {
  std::vector<std::string> words = {"serve", address};
  for (const auto& [name, value] : arguments) {
    words.push_back(absl::StrCat(name, "=", value));
  }
  return PeerProcess(words);
}

PeerProcess PeerProcess::Upload(const std::string& address, uint64_t bytes) {
  return PeerProcess({"upload", address, absl::StrCat(bytes)});
}

PeerProcess PeerProcess::Download(const std::string& address, uint64_t bytes) {
  return PeerProcess({"download", address, absl::StrCat(bytes)});
}

void PeerProcess::Kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

absl::Duration PeerProcess::CpuTime() const {
  clockid_t clock;
  timespec time = {};
  Check(::clock_getcpuclockid(pid_, &clock) == 0, "clock_getcpuclockid");
  Check(::clock_gettime(clock, &time) == 0, "clock_gettime");
  return absl::DurationFromTimespec(time);
}

void PeerProcess::Stop() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGSTOP);
  while (::waitpid(pid_, nullptr, WUNTRACED) < 0 && errno == EINTR) {
  }
}

void PeerProcess::Continue() {
  if (pid_ >= 0) ::kill(pid_, SIGCONT);
}

}  // namespace e2e
