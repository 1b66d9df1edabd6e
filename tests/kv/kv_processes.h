// The key-value programs as processes, for end-to-end tests: a server on a free
// port, and clients of it, on the devices of tests/e2e/device_under_test.h.
//
//   KvServer server;
//   ProcessResult result = server.Kv({"put", "key", "value"});
//   EXPECT_EQ(result.exit_status, 0) << result.err;
#ifndef VERBENA_TESTS_KV_KV_PROCESSES_H_
#define VERBENA_TESTS_KV_KV_PROCESSES_H_

#include <signal.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/device_under_test.h"
#include "tests/kv/subprocess.h"

namespace kv {

using Words = std::vector<std::string>;

// A command line of `kv` and of `kv_server`.
inline Words KvCommand(const std::string& address, const Words& words) {
  Words command = {"examples/kv/kv",
                   "--device=" + e2e::TheDeviceUnderTest().client_device,
                   "--address=" + address};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}
inline Words KvServerCommand(const std::string& address, const Words& flags) {
  Words command = {"examples/kv/kv_server",
                   "--device=" + e2e::TheDeviceUnderTest().server_device,
                   "--address=" + address};
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

class KvServer {
 public:
  explicit KvServer(const Words& flags = {},
                    const std::string& address = e2e::ServerUri())
      : process_(
            std::make_unique<Subprocess>(KvServerCommand(address, flags))) {
    const std::string line = process_->ReadLine(absl::Minutes(1));
    const std::string start = "listening on ";
    const size_t end =
        line.find(" (device " + e2e::TheDeviceUnderTest().server_device);
    if (line.starts_with(start) && end != std::string::npos) {
      address_ = line.substr(start.size(), end - start.size());
    } else {
      ADD_FAILURE() << "the server did not start: " << line << "\n"
                    << process_->Finish(absl::Seconds(5)).err;
    }
  }
  // Every server ends in order, whatever its clients did to it.
  ~KvServer() {
    if (process_ == nullptr) return;
    const ProcessResult result = Stop();
    EXPECT_EQ(result.exit_status, 0) << result.err;
  }

  const std::string& address() const { return address_; }
  Subprocess& process() { return *process_; }

  ProcessResult Kv(const Words& words, std::string_view in = {}) const {
    return RunProcess(KvCommand(address_, words), in);
  }

  // Asks it to end.
  ProcessResult Stop() {
    process_->Signal(SIGTERM);
    return Forget();
  }
  // Kills it at once.
  void Kill() {
    process_->Signal(SIGKILL);
    Forget();
  }

 private:
  ProcessResult Forget() {
    ProcessResult result = process_->Finish(absl::Minutes(1));
    process_ = nullptr;
    return result;
  }

  std::unique_ptr<Subprocess> process_;
  std::string address_;
};

}  // namespace kv

#endif  // VERBENA_TESTS_KV_KV_PROCESSES_H_
