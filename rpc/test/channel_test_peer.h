// Lets a test see how many methods stubs have registered with a channel.
//
//   EXPECT_EQ(rpc::testing::ChannelTestPeer(channel).registered_calls(), 3);
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_TEST_CHANNEL_TEST_PEER_H_
#define VERBENA_RPC_TEST_CHANNEL_TEST_PEER_H_

#include "rpc/channel.h"

namespace rpc::testing {

class ChannelTestPeer {
 public:
  explicit ChannelTestPeer(Channel* channel) : channel_(*channel) {}

  // Different ones.
  int registered_calls() const;
  // By all stubs of the channel.
  int registration_attempts() const;

 private:
  Channel& channel_;
};

}  // namespace rpc::testing

#endif  // VERBENA_RPC_TEST_CHANNEL_TEST_PEER_H_
