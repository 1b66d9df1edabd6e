// Another process of the same program, bound to a CPU: a benchmark's server, or
// a further client.
//
//   absl::StatusOr<ChildProcess> child =
//       ChildProcess::Start({"--role=client"}, /*cpu=*/0);
//   absl::StatusOr<std::string> answer = child->Ask("open 1000");
//
// and in the child, which finds itself called with --control_fd=N:
//
//   ParentProcess parent(FLAGS_control_fd);
//   parent.Answer("ready");  // what Start waits for
//   while (const auto line = parent.ReadLine()) parent.Answer(Obey(*line));
//
// They talk over one socket, in lines. The child has to end when its parent
// closes the other end, by destroying the ChildProcess or by dying.
//
// Thread rule: one thread at a time. The thread that starts a child must not
// end before the object: the kernel ends the child with it.
#ifndef VERBENA_BENCHMARKS_CHILD_PROCESS_H_
#define VERBENA_BENCHMARKS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace benchmarks {

// The parent's side.
class ChildProcess {
 public:
  // Runs this program again with `flags` and --control_fd=N, bound to `cpu`
  // (none: to what this thread is). Blocks until the child has answered, and
  // returns its error where it says one; UNAVAILABLE where it just ends.
  static absl::StatusOr<ChildProcess> Start(
      const std::vector<std::string>& flags, std::optional<int> cpu);

  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        control_fd_(std::exchange(other.control_fd_, -1)),
        greeting_(std::move(other.greeting_)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Has it end, and waits for that.
  ~ChildProcess();

  // Says `line`, and blocks until the child has answered; as Start otherwise.
  absl::StatusOr<std::string> Ask(const std::string& line);

  // Its first answer.
  const std::string& greeting() const { return greeting_; }
  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, int control_fd)
      : pid_(pid), control_fd_(control_fd) {}
  absl::StatusOr<std::string> ReadAnswer();

  pid_t pid_;
  int control_fd_;
  std::string greeting_;
};

// The child's side.
class ParentProcess {
 public:
  explicit ParentProcess(int control_fd) : control_fd_(control_fd) {}

  // A line, or an error; both go on one line.
  void Answer(const absl::StatusOr<std::string>& answer);
  // Blocks. None: the parent wants this process to end, or is gone.
  std::optional<std::string> ReadLine();

 private:
  const int control_fd_;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_CHILD_PROCESS_H_
