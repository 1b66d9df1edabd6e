#include "tests/warm_call/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace warm_call {
namespace {

void Check(bool ok, const char* call) {
  if (ok) return;
  std::perror(call);
  std::abort();
}

[[noreturn]] void Execute(const std::vector<std::string>& words, bool traced,
                          int out_fd) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  ::dup2(out_fd, STDOUT_FILENO);
  ::dup2(out_fd, STDERR_FILENO);
  if (traced && ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
    ::_exit(kCannotTrace);
  }
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) Check(errno == EINTR, "waitpid");
  return status;
}

void CountAt(pid_t pid, Tally& tally) {
  __ptrace_syscall_info info = {};
  Check(::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0,
        "PTRACE_GET_SYSCALL_INFO");
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
  tally.CountSystemCall(static_cast<int64_t>(info.entry.nr));
}

// Returns the status that the program ended with, of waitpid(2).
int Trace(pid_t pid, Tally& tally) {
  constexpr int kSystemCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
  int status = WaitFor(pid);  // it stops when it begins: PTRACE_TRACEME
  if (!WIFSTOPPED(status)) return status;
  Check(::ptrace(PTRACE_SETOPTIONS, pid, nullptr,
                 PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0,
        "PTRACE_SETOPTIONS");
  for (int signal = 0;;) {
    ::ptrace(PTRACE_SYSCALL, pid, nullptr, signal);
    status = WaitFor(pid);
    if (!WIFSTOPPED(status)) return status;
    const int stop = WSTOPSIG(status);
    if (stop == kSystemCallStop) CountAt(pid, tally);
    signal = stop == kSystemCallStop ? 0 : stop;
  }
}

std::string ReadAll(int fd) {
  std::string all;
  char bytes[4096];
  ssize_t count;
  while ((count = ::read(fd, bytes, sizeof(bytes))) != 0) {
    if (count > 0) all.append(bytes, static_cast<size_t>(count));
    Check(count > 0 || errno == EINTR, "read");
  }
  ::close(fd);
  return all;
}

ProgramResult Run(const std::vector<std::string>& words, Tally* tally) {
  int out[2];
  Check(::pipe2(out, O_CLOEXEC) == 0, "pipe2");
  const pid_t pid = ::fork();
  Check(pid >= 0, "fork");
  if (pid == 0) Execute(words, tally != nullptr, out[1]);
  ::close(out[1]);
  ProgramResult result;
  int status;
  if (tally != nullptr) {
    status = Trace(pid, *tally);
    result.output = ReadAll(out[0]);
  } else {
    result.output = ReadAll(out[0]);
    status = WaitFor(pid);
  }
  result.exit_status =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace

ProgramResult RunProgram(const std::vector<std::string>& words) {
  return Run(words, nullptr);
}

ProgramResult RunTraced(const std::vector<std::string>& words, Tally& tally) {
  return Run(words, &tally);
}

}  // namespace warm_call
