// A transport within one process, for tests of rpc/: it keeps the contract of
// rpc/transport.h and does on demand what real ones do seldom.
//
//   LoopbackNetwork network({.threads = 4});
//   auto channel = CreateChannel(network.address(), ...);
//   network.DropConnections();
//
// With threads = 0 everything happens on the caller's stack: a call is over
// when StartCall returns. Else callbacks run on the network's threads, those of
// one call's side one at a time, and a handler that blocks holds up its call
// alone.
#ifndef VERBENA_TESTS_RPC_LOOPBACK_TRANSPORT_H_
#define VERBENA_TESTS_RPC_LOOPBACK_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "rpc/transport.h"

namespace rpc::testing {

struct LoopbackOptions {
  int threads = 0;
  // How long a frame is under way.
  absl::Duration delay = absl::ZeroDuration();
  // How long a server's thread takes to send a frame.
  absl::Duration send_time = absl::ZeroDuration();
  // Runs on a server's thread, before each frame that it sends.
  std::function<void()> before_server_sends;
  // Messages arrive in pieces of at most this many bytes.
  size_t piece_bytes = SIZE_MAX;
  uint64_t memory_budget_bytes = uint64_t{1} << 32;
  Limits limits = {.max_header_bytes = 16384,
                   .copy_message_bytes = 1024,
                   .max_message_bytes = UINT64_MAX,
                   .max_attachment_bytes = UINT64_MAX};
};

// What one frame is, for tests that send their own.
struct RawFrame {
  std::string header;
  bool has_message = false;
  std::string message;
  bool end = false;
  uint32_t status_code = 0;
};

class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(const LoopbackOptions& options = {});
  // REQUIRES: its channels and servers are gone.
  ~LoopbackNetwork();
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;

  // For channels and for servers; one server at a time.
  const std::string& address() const { return address_; }

  // Ends every open call with UNAVAILABLE on both sides, as a connection that
  // breaks does.
  void DropConnections();
  // While set, connecting fails.
  void set_unreachable(bool unreachable);

  // Of rpc::ServerSink::OnMethod: of calls that are begun from now on.
  void SetLane(uint32_t lane);

  // Calls that are not closed on both sides yet.
  size_t open_calls() const;
  // Blocks until there is none.
  void WaitUntilIdle() const;
  // Of messages and attachments, both sides.
  uint64_t bytes_in_use() const;

  // The next call's next frame from the server is replaced by this one; and the
  // other way. Once each.
  void ReplaceNextResponse(const RawFrame& frame);
  void ReplaceNextRequest(const RawFrame& frame);

  class Impl;

 private:
  const std::string address_;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_LOOPBACK_TRANSPORT_H_
