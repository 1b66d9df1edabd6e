#include "benchmarks/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "benchmarks/cpu_pinning.h"

namespace benchmarks {
namespace {

constexpr char kOk[] = "ok ";
constexpr char kFailed[] = "failed ";

absl::Status ErrnoError(const char* call) {
  return absl::InternalError(absl::StrCat(call, ": ", std::strerror(errno)));
}

// In the child, between fork and exec: other threads may have held any lock, so
// that system calls are all there is.
[[noreturn]] void Execute(char* const* words, pid_t parent, int control_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  ::fcntl(control_fd, F_SETFD, 0);          // stays open
  ::execv("/proc/self/exe", words);
  ::_exit(127);
}

// A child is born where its parent is bound to, so the parent is for a moment
// what the child is to be.
absl::StatusOr<pid_t> ForkOn(std::optional<int> cpu, char* const* words,
                             int control_fd) {
  cpu_set_t own;
  if (::sched_getaffinity(0, sizeof(own), &own) != 0) {
    return ErrnoError("sched_getaffinity");
  }
  if (cpu.has_value()) {
    const absl::Status pinned = PinTo(*cpu);
    if (!pinned.ok()) return pinned;
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) Execute(words, parent, control_fd);
  const absl::Status forked = pid < 0 ? ErrnoError("fork") : absl::OkStatus();
  if (cpu.has_value()) ::sched_setaffinity(0, sizeof(own), &own);
  if (!forked.ok()) return forked;
  return pid;
}

// All bytes up to a line's end, without it; none at the end of the stream.
std::optional<std::string> ReadLineOf(int fd) {
  std::string line;
  char c;
  while (true) {
    const ssize_t count = ::read(fd, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    if (c == '\n') return line;
    line.push_back(c);
  }
}

// Where the other side is gone, the next ReadLineOf says so.
void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(
    const std::vector<std::string>& flags, std::optional<int> cpu) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return ErrnoError("socketpair");
  }
  std::vector<std::string> words = {::program_invocation_short_name};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back(absl::StrCat("--control_fd=", fds[1]));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const absl::StatusOr<pid_t> pid = ForkOn(cpu, arguments.data(), fds[1]);
  ::close(fds[1]);
  if (!pid.ok()) {
    ::close(fds[0]);
    return pid.status();
  }
  ChildProcess child(*pid, fds[0]);
  absl::StatusOr<std::string> greeting = child.ReadAnswer();
  if (!greeting.ok()) return greeting.status();
  child.greeting_ = *std::move(greeting);
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::close(control_fd_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::StatusOr<std::string> ChildProcess::Ask(const std::string& line) {
  WriteAll(control_fd_, absl::StrCat(line, "\n"));
  return ReadAnswer();
}

absl::StatusOr<std::string> ChildProcess::ReadAnswer() {
  const std::optional<std::string> line = ReadLineOf(control_fd_);
  if (!line.has_value()) {
    return absl::UnavailableError("it ended without a word");
  }
  if (!line->starts_with(kOk)) {
    return absl::UnavailableError(line->substr(std::strlen(kFailed)));
  }
  return line->substr(std::strlen(kOk));
}

void ParentProcess::Answer(const absl::StatusOr<std::string>& answer) {
  const std::string text =
      answer.ok() ? absl::StrCat(kOk, *answer)
                  : absl::StrCat(kFailed, answer.status().ToString());
  WriteAll(control_fd_,
           absl::StrCat(absl::StrReplaceAll(text, {{"\n", " "}}), "\n"));
}

std::optional<std::string> ParentProcess::ReadLine() {
  return ReadLineOf(control_fd_);
}

}  // namespace benchmarks
