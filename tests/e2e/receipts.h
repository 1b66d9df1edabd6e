// Calls that are accounted for: which ones a server saw, and what became of
// them at the client. Without rpc/ above the transports, as there calls could
// be repeated.
//
//   ReceiptServer server({.max_connection_age = absl::Seconds(1)});
//   ReceiptClient client(server.address());
//   const uint64_t call = client.Start();
//   const Receipt receipt = client.Finish(call);
//   EXPECT_EQ(server.Saw(call), receipt.status.ok() || receipt.may_have_run);
//
// Thread rule: thread-safe, but for Finish: one thread a call.
#ifndef VERBENA_TESTS_E2E_RECEIPTS_H_
#define VERBENA_TESTS_E2E_RECEIPTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/transport.h"

namespace e2e {

class ReceiptServer final : private rpc::ServerSink {
 public:
  // The device is that of device_under_test.h, whatever the options say.
  explicit ReceiptServer(rpc::TransportOptions options = {});
  ~ReceiptServer();

  std::string address() const { return address_; }
  // Whether calls are answered, or held until they are again.
  void Answer(bool answer);
  void Shutdown(absl::Time deadline) { transport_->Shutdown(deadline); }

  // Whether the call of this number was seen. Seeing one twice fails the test.
  bool Saw(uint64_t number) const;
  size_t calls() const;
  size_t held() const;
  // How many connections they came on.
  size_t connections() const;
  // Which the last call came in on.
  std::thread::id last_thread() const;
  rpc::ServerTransport& transport() { return *transport_; }

 private:
  class Sink;

  const void* OnMethod(std::string_view, uint32_t) override { return this; }
  rpc::CallSink* OnCall(const Call& call, rpc::IncomingFrame& frame) override;
  void SendAnswer(rpc::CallHandle call);

  std::string address_;
  std::unique_ptr<rpc::ServerTransport> transport_;
  mutable absl::Mutex mutex_;
  bool answer_ ABSL_GUARDED_BY(mutex_) = true;
  std::set<uint64_t> seen_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::thread::id last_thread_ ABSL_GUARDED_BY(mutex_);
  std::vector<rpc::CallHandle> held_ ABSL_GUARDED_BY(mutex_);
};

// How a call ended.
struct Receipt {
  absl::Status status;
  bool may_have_run = true;
};

class ReceiptClient final {
 public:
  // Calls have attachments of so many bytes.
  explicit ReceiptClient(const std::string& address,
                         size_t attachment_bytes = 0);
  // REQUIRES: every call is finished.
  ~ReceiptClient();

  // Numbers are unique in the process.
  uint64_t Start();
  Receipt Finish(uint64_t number);
  Receipt Call() { return Finish(Start()); }
  rpc::ClientTransport& transport() { return *transport_; }

 private:
  class Sink;

  const std::unique_ptr<rpc::ClientTransport> transport_;
  const size_t attachment_bytes_;
  const uint32_t method_;
  absl::Mutex mutex_;
  std::map<uint64_t, std::unique_ptr<Sink>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_RECEIPTS_H_
