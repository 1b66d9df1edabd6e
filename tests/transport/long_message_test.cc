// Goal: what is longer than caches is read past them, and nothing else is.
// Method: the READs that a server posts for messages of several lengths.
#include <cstddef>

#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::MeddledDevice;
using testing::Side;
using testing::TestBytes;

constexpr size_t kLeast = 8 << 20;
constexpr int kReadsOfLeast = 8;

class LongMessageTest : public ::testing::Test {
 protected:
  LongMessageTest() {
    server_.Listen();
    connection_ = client_.ConnectTo(server_);
    server_.Do([&] { server_.device().CountReads(); });
  }

  // Sends one, and adds the READs for it up.
  void Send(size_t bytes) {
    const int reads = MeddledDevice::reads();
    const int past_caches = MeddledDevice::reads_past_caches();
    const int answered = client_.answered();
    client_.OpenGrowing(connection_, bytes, bytes).memory.reset();
    ASSERT_TRUE(Eventually([&] { return client_.answered() > answered; }));
    reads_ = MeddledDevice::reads() - reads;
    past_caches_ = MeddledDevice::reads_past_caches() - past_caches;
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
  int reads_ = 0;
  int past_caches_ = 0;
};

TEST_F(LongMessageTest, IsReadPastCaches) {
  Send(kLeast);
  EXPECT_TRUE(server_.last_message() == TestBytes(kLeast));
  EXPECT_EQ(reads_, kReadsOfLeast);
  EXPECT_EQ(past_caches_, kReadsOfLeast);
}

TEST_F(LongMessageTest, IsNotIfCachesMayHoldIt) {
  Send(kLeast - 1);
  EXPECT_TRUE(server_.last_message() == TestBytes(kLeast - 1));
  EXPECT_EQ(reads_, kReadsOfLeast);
  EXPECT_EQ(past_caches_, 0);
}

// It goes through memory that stays in a cache.
TEST_F(LongMessageTest, IsNotIfParsedWhileItArrives) {
  server_.TakeWhatArrives();
  Send(kLeast);
  EXPECT_EQ(server_.arrived(), 1);
  EXPECT_GT(reads_, 0);
  EXPECT_EQ(past_caches_, 0);
}

}  // namespace
}  // namespace rdma
