// Either side of calls without rpc/: frames with whatever the test puts into
// them, over the device under test.
//
//   RawFrame frame;
//   frame.header = HeaderEntry(kInitialMetadata, "Illegal", "value");
//   frame.has_message = frame.end = true;
//   EXPECT_EQ(CallRaw(*channel, "/e2e.Parcels/Unary", {frame}),
//             rpc::StatusCode::INTERNAL);
//
//   RawServer server;
//   server.SetAnswer({frame});
//   ... a call to server.address() ...
//
// Thread rule: one thread at a time.
#ifndef VERBENA_TESTS_E2E_RAW_PEERS_H_
#define VERBENA_TESTS_E2E_RAW_PEERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "rpc/rpc.h"

namespace e2e {

struct RawFrame {
  std::string header;
  bool has_message = false;
  std::string message;
  bool end = false;
  uint32_t status_code = 0;
};

// Of docs/wire_format.md.
enum EntryKind : char {
  kInitialMetadata = 0x01,
  kTrailingMetadata = 0x02,
  kStatusMessage = 0x03,
};

// An entry of a header block, right or wrong. REQUIRES: key and value are
// shorter than 128 bytes.
std::string HeaderEntry(EntryKind kind, std::string_view key,
                        std::string_view value);

// Calls with these frames, and returns how the call ended.
rpc::StatusCode CallRaw(rpc::Channel& channel, const char* path,
                        const std::vector<RawFrame>& frames);

// Has every method, and gives every call the same answer, as soon as it opens.
class RawServer final : private rpc::ServerSink {
 public:
  RawServer();
  ~RawServer();

  const absl::Status& status() const { return status_; }
  std::string address() const;

  void SetAnswer(std::vector<RawFrame> frames);
  // Where the last call came from, by its connection.
  std::string last_peer() const;

 private:
  const void* OnMethod(std::string_view, uint32_t) override { return this; }
  rpc::CallSink* OnCall(const Call& call, rpc::IncomingFrame& frame) override;

  absl::Status Listen();

  int port_ = 0;
  std::unique_ptr<rpc::ServerTransport> transport_;
  absl::Status status_;
  mutable absl::Mutex mutex_;
  std::vector<RawFrame> answer_ ABSL_GUARDED_BY(mutex_);
  std::string last_peer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_RAW_PEERS_H_
