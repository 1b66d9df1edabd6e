#include "benchmarks/rpc_bench_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/cpu_pinning.h"
#include "benchmarks/rpc_bench_service.h"

namespace benchmarks {
namespace {

// What the child says, in one line each.
constexpr char kListening[] = "listening ";
constexpr char kFailed[] = "failed ";

absl::Status ErrnoError(const char* call) {
  return absl::InternalError(absl::StrCat(call, ": ", std::strerror(errno)));
}

// In the child, between fork and exec.
[[noreturn]] void Execute(const std::vector<std::string>& words, pid_t parent,
                          int control_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  ::fcntl(control_fd, F_SETFD, 0);          // stays open
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  std::perror("execv /proc/self/exe");
  ::_exit(127);
}

// All bytes up to a line's end, without it, or up to the end of the stream.
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

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the parent is gone, and this process with it
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

struct RunningServer {
  BenchService service;
  int port = 0;
  std::unique_ptr<rpc::Server> server;  // goes before the service
};

absl::StatusOr<std::unique_ptr<RunningServer>> StartServer(
    const std::string& address, const EndpointSettings& settings) {
  auto running = std::make_unique<RunningServer>();
  rpc::ServerBuilder builder;
  builder.AddListeningPort(address, rpc::InsecureServerCredentials(),
                           &running->port);
  builder.RegisterService(&running->service);
  builder.AddChannelArgument("verbena.device", settings.device);
  builder.AddChannelArgument("verbena.spin_us", settings.spin_us);
  builder.AddChannelArgument("verbena.eager_limit_bytes",
                             settings.eager_limit_bytes);
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder.BuildAndStartOrStatus();
  if (!server.ok()) return server.status();
  running->server = *std::move(server);
  return running;
}

// Calls that still run when a server is to end get this long.
constexpr absl::Duration kDrain = absl::Seconds(5);

}  // namespace

rpc::ChannelArguments ChannelArgumentsOf(const EndpointSettings& settings) {
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", settings.device);
  arguments.SetInt64("verbena.spin_us", settings.spin_us);
  arguments.SetInt64("verbena.eager_limit_bytes", settings.eager_limit_bytes);
  return arguments;
}

absl::StatusOr<ServerProcess> ServerProcess::Start(
    const std::string& host, const std::vector<std::string>& flags,
    std::optional<int> cpu) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return ErrnoError("socketpair");
  }
  std::vector<std::string> words = {"rpc_bench"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back(absl::StrCat("--control_fd=", fds[1]));

  // A child is born where its parent is bound to.
  absl::Status status = cpu.has_value() ? PinTo(*cpu) : absl::OkStatus();
  const pid_t parent = ::getpid();
  const pid_t pid = status.ok() ? ::fork() : -1;
  if (pid == 0) Execute(words, parent, fds[1]);
  if (status.ok() && pid < 0) status = ErrnoError("fork");
  ::close(fds[1]);
  if (!status.ok()) {
    ::close(fds[0]);
    return status;
  }

  ServerProcess process(pid, fds[0]);
  const std::string line = ReadLine(fds[0]);
  if (!line.starts_with(kListening)) {
    return absl::UnavailableError(absl::StrCat(
        "the server did not start: ", line.starts_with(kFailed)
                                          ? line.substr(std::strlen(kFailed))
                                          : "it ended without a word"));
  }
  process.address_ =
      absl::StrCat("rdma://", host, ":", line.substr(std::strlen(kListening)));
  return process;
}

ServerProcess::~ServerProcess() {
  if (pid_ < 0) return;
  ::close(control_fd_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int ServeParent(int control_fd, const std::string& host,
                const EndpointSettings& settings) {
  const auto running =
      StartServer(absl::StrCat("rdma://", host, ":0"), settings);
  if (!running.ok()) {
    WriteAll(control_fd,
             absl::StrCat(kFailed, running.status().ToString(), "\n"));
    return 1;
  }
  WriteAll(control_fd, absl::StrCat(kListening, (*running)->port, "\n"));
  ReadLine(control_fd);  // nothing comes: until the parent closes it
  (*running)->server->Shutdown(absl::Now() + kDrain);
  return 0;
}

int ServeForEver(const std::string& address, const EndpointSettings& settings) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Before any thread starts, so that all leave them to sigwait.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto running = StartServer(address, settings);
  if (!running.ok()) {
    absl::FPrintF(stderr, "rpc_bench: %s\n", running.status().ToString());
    return 1;
  }
  absl::FPrintF(stderr, "rpc_bench: serving on port %d (device %s)\n",
                (*running)->port, (*running)->server->device());
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  (*running)->server->Shutdown(absl::Now() + kDrain);
  return 0;
}

}  // namespace benchmarks
