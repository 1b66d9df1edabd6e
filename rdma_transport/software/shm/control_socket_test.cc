// Goal: messages and descriptors arrive whole or not at all, and no descriptor
// is ever left open. Method: a socket pair, with this test as a peer that keeps
// to no rule; the process's descriptors are counted.
#include "rdma_transport/software/shm/control_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

int CountOpenDescriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

class ControlSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    near_.reset(fds[0]);
    far_.reset(fds[1]);
  }

  // Sends `count` descriptors with one message.
  void SendManyDescriptors(int count) {
    std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
    char byte = 1;
    iovec part = {&byte, 1};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    const std::vector<int> fds(count, STDERR_FILENO);
    std::memcpy(CMSG_DATA(rights), fds.data(), count * sizeof(int));
    ASSERT_EQ(sendmsg(far_.get(), &header, 0), 1);
  }

  UniqueFd near_;
  UniqueFd far_;
  ControlMessage message_;
};

TEST_F(ControlSocketTest, CarriesBytesAndDescriptors) {
  const std::string text = "hello";
  ASSERT_EQ(SendMessage(far_.get(), text.data(), text.size(),
                        {STDERR_FILENO, STDERR_FILENO}),
            SendResult::kSent);
  ASSERT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kMessage);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(message_.data.data()),
                        message_.bytes),
            text);
  EXPECT_EQ(message_.fd_count, 2u);
  EXPECT_FALSE(message_.truncated);
  EXPECT_EQ(fcntl(message_.fds[1].get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(ControlSocketTest, AnEmptySocketIsNoMessage) {
  EXPECT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kNone);
}

TEST_F(ControlSocketTest, WhatWasSentBeforeTheEndArrivesBeforeTheEnd) {
  ASSERT_EQ(SendMessage(far_.get(), "x", 1, {}), SendResult::kSent);
  far_.reset();
  EXPECT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kMessage);
  EXPECT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kClosed);
  EXPECT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kClosed);
}

TEST_F(ControlSocketTest, APeerThatDiesWithUnreadMessagesLosesNoneOfItsOwn) {
  ASSERT_EQ(SendMessage(near_.get(), "y", 1, {}), SendResult::kSent);
  ASSERT_EQ(SendMessage(far_.get(), "x", 1, {}), SendResult::kSent);
  far_.reset();  // "y" was not read: the kernel reports a reset
  EXPECT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kMessage);
  EXPECT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kClosed);
}

TEST_F(ControlSocketTest, SendingToADeadPeerIsNoSignal) {
  far_.reset();
  EXPECT_EQ(SendMessage(near_.get(), "x", 1, {}), SendResult::kBroken);
}

TEST_F(ControlSocketTest, AFullSocketSaysSo) {
  SendResult result = SendResult::kSent;
  for (int i = 0; i < 100'000 && result == SendResult::kSent; ++i) {
    result = SendMessage(near_.get(), "x", 1, {});
  }
  EXPECT_EQ(result, SendResult::kFull);
}

TEST_F(ControlSocketTest, SurplusDescriptorsAreClosed) {
  const int before = CountOpenDescriptors();
  for (int count : {3, 17, 253}) {
    SendManyDescriptors(count);
    ASSERT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kMessage);
    EXPECT_TRUE(message_.truncated);
    EXPECT_EQ(message_.fd_count, kMaxControlFds);
  }
  for (UniqueFd& fd : message_.fds) fd.reset();
  EXPECT_EQ(CountOpenDescriptors(), before);
}

// The receiver's own limit is no fault of the sender's.
TEST_F(ControlSocketTest, DescriptorsThatAreLostForWantOfRoomAreMarked) {
  ASSERT_EQ(SendMessage(far_.get(), "x", 1, {STDERR_FILENO}),
            SendResult::kSent);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const ReceiveResult result = ReceiveMessage(near_.get(), &message_);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(result, ReceiveResult::kMessage);
  EXPECT_TRUE(message_.descriptors_lost);
  EXPECT_FALSE(message_.truncated);
  EXPECT_EQ(message_.fd_count, 0u);
}

TEST_F(ControlSocketTest, LongMessagesAreMarked) {
  const std::string text(kMaxControlBytes + 1, 'x');
  ASSERT_EQ(send(far_.get(), text.data(), text.size(), 0),
            static_cast<ssize_t>(text.size()));
  ASSERT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kMessage);
  EXPECT_TRUE(message_.truncated);
}

TEST_F(ControlSocketTest, AnEmptyMessageIsTheEnd) {
  ASSERT_EQ(send(far_.get(), "", 0, 0), 0);
  EXPECT_EQ(ReceiveMessage(near_.get(), &message_), ReceiveResult::kClosed);
}

}  // namespace
}  // namespace rdma::soft
