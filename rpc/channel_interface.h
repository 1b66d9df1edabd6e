// What a stub needs of a channel.
//
// Thread rule: every function may be called from any thread.
#ifndef VERBENA_RPC_CHANNEL_INTERFACE_H_
#define VERBENA_RPC_CHANNEL_INTERFACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/buffer.h"
#include "rpc/internal/deadline.h"
#include "rpc/internal/message_codec.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc {
class ChannelInterface;
class CompletionQueue;
namespace internal {

struct ChannelInterceptors;

// What calls on a channel go through.
struct CallTarget {
  // Null: every call ends with `error`, or there are interceptors.
  ClientTransport* transport = nullptr;
  const ChannelInterceptors* interceptors = nullptr;  // the channel's
  Status error;
  EncodeLimits encode_limits;
  size_t max_metadata_bytes = 0;  // received
  ChannelInterface* channel = nullptr;
};

// See ChannelInterface::NotifyOnStateChange.
void NotifyOnStateChange(std::shared_ptr<ChannelInterface> channel,
                         ConnectivityState last_observed, absl::Time deadline,
                         CompletionQueue* queue, void* tag);

}  // namespace internal

// Always held by a std::shared_ptr: calls of the callback API keep their
// channel alive until they are over.
class ChannelInterface : public std::enable_shared_from_this<ChannelInterface> {
 public:
  virtual ~ChannelInterface() = default;

  // The connection's state. With `try_to_connect` an idle channel starts to
  // connect. Does not block.
  virtual ConnectivityState GetState(bool try_to_connect) = 0;

  // Blocks until the state is another than `last_observed`; false where
  // `deadline` (absl::Time, or a time point of std::chrono's system or steady
  // clock) passes first.
  template <class T>
  bool WaitForStateChange(ConnectivityState last_observed, T deadline) {
    return WaitForStateChangeUntil(last_observed, internal::ToTime(deadline));
  }

  // Connects where necessary, and blocks until the channel is ready; false
  // where `deadline` passes first or the channel can never be.
  template <class T>
  bool WaitForConnected(T deadline) {
    const absl::Time until = internal::ToTime(deadline);
    ConnectivityState state;
    while ((state = GetState(true)) != ConnectivityState::kReady) {
      if (state == ConnectivityState::kShutdown) return false;
      if (!WaitForStateChangeUntil(state, until)) return false;
    }
    return true;
  }

  // The same by an event of `queue`, whose `ok` is what WaitForStateChange
  // says. Takes a thread for as long as it waits.
  template <class T>
  void NotifyOnStateChange(ConnectivityState last_observed, T deadline,
                           CompletionQueue* queue, void* tag) {
    internal::NotifyOnStateChange(shared_from_this(), last_observed,
                                  internal::ToTime(deadline), queue, tag);
  }

  // Memory that calls on this channel send without copying, where it is longer
  // than a frame: for attachments (ClientContext::set_attachment).
  // RESOURCE_EXHAUSTED: the memory budget is used up; its text says what to do.
  virtual absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) = 0;

  // For generated code and its runtime. The result lives as long as the
  // channel.
  virtual const internal::CallTarget& call_target() const = 0;
  // The number of a method's path for this channel; see ClientTransport.
  virtual uint32_t RegisterMethod(const char* path) = 0;

 private:
  virtual bool WaitForStateChangeUntil(ConnectivityState last_observed,
                                       absl::Time deadline) = 0;
};

}  // namespace rpc

#endif  // VERBENA_RPC_CHANNEL_INTERFACE_H_
