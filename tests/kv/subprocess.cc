#include "tests/kv/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"

namespace kv {
namespace {

void Check(bool ok, const char* call) {
  if (ok) return;
  std::perror(call);
  std::abort();
}

// A file that holds `bytes`, at its start: as a child's standard input it needs
// nobody to feed it.
int FileOf(std::string_view bytes) {
  const int fd = ::memfd_create("stdin", MFD_CLOEXEC);
  Check(fd >= 0, "memfd_create");
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    Check(count > 0, "write");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  Check(::lseek(fd, 0, SEEK_SET) == 0, "lseek");
  return fd;
}

// In the child, between fork and exec: other threads may have held any lock, so
// that system calls are all there is.
[[noreturn]] void Execute(char* const* arguments, pid_t parent, int in_fd,
                          int out_fd, int err_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  ::dup2(in_fd, STDIN_FILENO);
  ::dup2(out_fd, STDOUT_FILENO);
  ::dup2(err_fd, STDERR_FILENO);
  ::execv(arguments[0], arguments);
  std::perror(arguments[0]);
  ::_exit(127);
}

// Moves what a pipe holds to `text`; closes it at its end.
void ReadFrom(int* fd, std::string* text) {
  char bytes[65536];
  const ssize_t count = ::read(*fd, bytes, sizeof(bytes));
  if (count > 0) {
    text->append(bytes, static_cast<size_t>(count));
  } else if (count == 0 || errno != EINTR) {
    ::close(std::exchange(*fd, -1));
  }
}

}  // namespace

Subprocess::Subprocess(const std::vector<std::string>& command,
                       std::string_view in) {
  Start(command, FileOf(in));
}

Subprocess::Subprocess(const std::vector<std::string>& command, OpenInput) {
  int in[2];
  Check(::pipe2(in, O_CLOEXEC) == 0, "pipe2");
  in_fd_ = in[1];
  Start(command, in[0]);
}

void Subprocess::Start(const std::vector<std::string>& command, int in_fd) {
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  int out[2];
  int err[2];
  Check(::pipe2(out, O_CLOEXEC) == 0, "pipe2");
  Check(::pipe2(err, O_CLOEXEC) == 0, "pipe2");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  Check(pid_ >= 0, "fork");
  if (pid_ == 0) Execute(arguments.data(), parent, in_fd, out[1], err[1]);
  ::close(in_fd);
  ::close(out[1]);
  ::close(err[1]);
  out_fd_ = out[0];
  err_fd_ = err[0];
}

Subprocess::~Subprocess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  CloseAll();
}

void Subprocess::Signal(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

void Subprocess::Write(std::string_view text) {
  ::signal(SIGPIPE, SIG_IGN);  // an error instead
  while (!text.empty()) {
    const ssize_t count = ::write(in_fd_, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void Subprocess::CloseInput() {
  if (in_fd_ >= 0) ::close(std::exchange(in_fd_, -1));
}

bool Subprocess::ReadSome(absl::Time deadline) {
  pollfd fds[2] = {{.fd = out_fd_, .events = POLLIN},
                   {.fd = err_fd_, .events = POLLIN}};
  const int64_t left_ms = absl::ToInt64Milliseconds(
      absl::Ceil(deadline - absl::Now(), absl::Milliseconds(1)));
  const int ready = ::poll(
      fds, 2, static_cast<int>(std::clamp<int64_t>(left_ms, 0, 600'000)));
  if (ready < 0) return errno == EINTR;
  if (fds[0].revents != 0) ReadFrom(&out_fd_, &result_.out);
  if (fds[1].revents != 0) ReadFrom(&err_fd_, &result_.err);
  return ready > 0;
}

std::string Subprocess::ReadLine(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const size_t end = result_.out.find('\n');
    if (end != std::string::npos) {
      std::string line = result_.out.substr(0, end);
      result_.out.erase(0, end + 1);
      return line;
    }
    if (out_fd_ < 0 || !ReadSome(deadline)) return "";
  }
}

ProcessResult Subprocess::Finish(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (out_fd_ >= 0 || err_fd_ >= 0) {
    if (!ReadSome(deadline)) {
      Signal(SIGKILL);
      result_.err += "\n(killed by the test: it took too long)\n";
      break;
    }
  }
  int status = 0;
  Check(::waitpid(std::exchange(pid_, -1), &status, 0) > 0, "waitpid");
  result_.exit_status =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  CloseAll();
  return std::move(result_);
}

void Subprocess::CloseAll() {
  CloseInput();
  if (out_fd_ >= 0) ::close(std::exchange(out_fd_, -1));
  if (err_fd_ >= 0) ::close(std::exchange(err_fd_, -1));
}

ProcessResult RunProcess(const std::vector<std::string>& command,
                         std::string_view in) {
  return Subprocess(command, in).Finish();
}

}  // namespace kv
