#include "rpc/test/channel_test_peer.h"

#include "absl/synchronization/mutex.h"

namespace rpc::testing {

int ChannelTestPeer::registered_calls() const {
  absl::MutexLock lock(&channel_.registrations_mutex_);
  return static_cast<int>(channel_.registered_methods_.size());
}

int ChannelTestPeer::registration_attempts() const {
  absl::MutexLock lock(&channel_.registrations_mutex_);
  return channel_.registration_attempts_;
}

}  // namespace rpc::testing
