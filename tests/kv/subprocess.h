// Child processes of tests: run one to its end, or keep one running.
//
//   ProcessResult result = RunProcess({"examples/kv/kv", "get", "key"}, "");
//   EXPECT_EQ(result.exit_status, 0);
//
//   Subprocess server({"examples/kv/kv_server"});
//   std::string line = server.ReadLine(absl::Seconds(30));
//
// A child dies with its test (PR_SET_PDEATHSIG). Thread rule: one thread at a
// time.
#ifndef VERBENA_TESTS_KV_SUBPROCESS_H_
#define VERBENA_TESTS_KV_SUBPROCESS_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace kv {

// How a child ended: its exit status, or 128 plus the signal that killed it.
struct ProcessResult {
  int exit_status = -1;
  std::string out;
  std::string err;
};

class Subprocess {
 public:
  // Starts `command`, the program's path first. `in` is its standard input.
  explicit Subprocess(const std::vector<std::string>& command,
                      std::string_view in = {});
  // Its standard input is what Write gives it, until CloseInput.
  struct OpenInput {};
  Subprocess(const std::vector<std::string>& command, OpenInput);
  // Kills it where it still runs.
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;

  // No effect on a child that does not read any more.
  void Write(std::string_view text);
  void CloseInput();

  // The next line of its standard output, without the line end; empty where it
  // ended, or `timeout` passed, before.
  std::string ReadLine(absl::Duration timeout);

  // Waits for its end and returns how it came, with all that ReadLine left. One
  // that takes longer is killed. An open input stays open.
  ProcessResult Finish(absl::Duration timeout = absl::Minutes(5));

 private:
  // Takes over `in_fd`.
  void Start(const std::vector<std::string>& command, int in_fd);
  // Reads what there is until `timeout` or both streams end. False: timeout.
  bool ReadSome(absl::Time deadline);
  void CloseAll();

  pid_t pid_ = -1;
  int in_fd_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
  ProcessResult result_;
};

ProcessResult RunProcess(const std::vector<std::string>& command,
                         std::string_view in = {});

}  // namespace kv

#endif  // VERBENA_TESTS_KV_SUBPROCESS_H_
