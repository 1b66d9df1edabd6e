// What keeps a channel while a call of it runs, beside its stubs: the channel
// may be destroyed meanwhile, and the call goes on.
//
// Who hears of a call's end often begins the next one. That takes over what
// the call that is over held, instead of two atomic operations on a counter
// that all threads share.
//
//   call begins:  channel_ = HoldChannel(channel);
//   call is over: ChannelRelease release(std::move(channel_));
//                 ... the user is told ...
#ifndef VERBENA_RPC_INTERNAL_CHANNEL_HOLD_H_
#define VERBENA_RPC_INTERNAL_CHANNEL_HOLD_H_

#include <memory>
#include <utility>

#include "rpc/channel_interface.h"

namespace rpc::internal {

// For the stack. Lets go of the channel at the end, unless a call that began
// meanwhile on this thread has taken it.
class ChannelRelease {
 public:
  explicit ChannelRelease(std::shared_ptr<ChannelInterface> channel)
      : channel_(std::move(channel)), outer_(std::exchange(innermost_, this)) {}
  ~ChannelRelease() { innermost_ = outer_; }
  ChannelRelease(const ChannelRelease&) = delete;
  ChannelRelease& operator=(const ChannelRelease&) = delete;

 private:
  friend std::shared_ptr<ChannelInterface> HoldChannel(ChannelInterface*);

  // Of this thread.
  static inline constinit thread_local ChannelRelease* innermost_ = nullptr;

  std::shared_ptr<ChannelInterface> channel_;
  ChannelRelease* const outer_;
};

inline std::shared_ptr<ChannelInterface> HoldChannel(
    ChannelInterface* channel) {
  ChannelRelease* const release = ChannelRelease::innermost_;
  if (release != nullptr && release->channel_.get() == channel) [[likely]] {
    return std::move(release->channel_);
  }
  return channel->shared_from_this();
}

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CHANNEL_HOLD_H_
