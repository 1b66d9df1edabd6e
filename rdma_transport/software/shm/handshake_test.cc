// Goal: a handshake says what was put in, and nothing that is not one is taken
// for one. Method: round trips, then every byte of a valid message changed, and
// every length.
#include "rdma_transport/software/shm/handshake.h"

#include <sys/eventfd.h>

#include <cstring>

#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

HandshakeSetup SomeSetup() {
  HandshakeSetup setup;
  setup.qp_num = 0x123456;
  setup.pd = 9;
  setup.send_cq_line = 3;
  setup.recv_cq_line = 4;
  setup.ring_lines = 128;
  setup.asymmetric_fence = true;
  setup.responder_resources = 16;
  setup.initiator_depth = 8;
  setup.rnr_retry_count = 7;
  setup.retry_count = 6;
  setup.address = *SocketAddress::FromNumeric("::1", 40000);
  setup.private_data = std::string("a\0b", 3);
  return setup;
}

ControlMessage Received(const EncodedHandshake& encoded, int fds) {
  ControlMessage message;
  std::memcpy(message.data.data(), encoded.data, encoded.bytes);
  message.bytes = encoded.bytes;
  for (int i = 0; i < fds; ++i) {
    message.fds[i].reset(eventfd(0, EFD_CLOEXEC));
  }
  message.fd_count = fds;
  return message;
}

TEST(HandshakeTest, SetupsArriveAsTheyWere) {
  const HandshakeSetup sent = SomeSetup();
  const ControlMessage message =
      Received(EncodeSetup(HandshakeKind::kHello, sent), 2);
  EXPECT_EQ(*DecodeKind(message), HandshakeKind::kHello);
  const auto setup = DecodeSetup(message);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->qp_num, sent.qp_num);
  EXPECT_EQ(setup->pd, sent.pd);
  EXPECT_EQ(setup->send_cq_line, sent.send_cq_line);
  EXPECT_EQ(setup->recv_cq_line, sent.recv_cq_line);
  EXPECT_EQ(setup->ring_lines, sent.ring_lines);
  EXPECT_TRUE(setup->asymmetric_fence);
  EXPECT_EQ(setup->responder_resources, sent.responder_resources);
  EXPECT_EQ(setup->initiator_depth, sent.initiator_depth);
  EXPECT_EQ(setup->rnr_retry_count, sent.rnr_retry_count);
  EXPECT_EQ(setup->retry_count, sent.retry_count);
  EXPECT_EQ(setup->address.ToString(), "[::1]:40000");
  EXPECT_EQ(setup->private_data, sent.private_data);
}

TEST(HandshakeTest, PrivateDataOfEverySizeFits) {
  for (size_t bytes :
       {size_t{0}, kMaxConnectPrivateData, kMaxAcceptPrivateData}) {
    HandshakeSetup setup = SomeSetup();
    setup.private_data.assign(bytes, 'p');
    const auto decoded =
        DecodeSetup(Received(EncodeSetup(HandshakeKind::kAccept, setup), 2));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->private_data, setup.private_data);
  }
}

TEST(HandshakeTest, RejectionsArriveAsTheyWere) {
  const ControlMessage message =
      Received(EncodeRejection({.by_user = true, .reason = "full"}), 0);
  EXPECT_EQ(*DecodeKind(message), HandshakeKind::kReject);
  const auto rejection = DecodeRejection(message);
  ASSERT_TRUE(rejection.ok());
  EXPECT_TRUE(rejection->by_user);
  EXPECT_EQ(rejection->reason, "full");
}

TEST(HandshakeTest, LongReasonsAreCut) {
  const auto rejection = DecodeRejection(
      Received(EncodeRejection({.reason = std::string(1000, 'r')}), 0));
  ASSERT_TRUE(rejection.ok());
  EXPECT_EQ(rejection->reason.size(), kMaxRejectPrivateData);
}

TEST(HandshakeTest, AnotherVersionIsNamedWithBoth) {
  EncodedHandshake encoded = EncodeSetup(HandshakeKind::kHello, SomeSetup());
  const uint16_t version = 77;
  std::memcpy(encoded.data + 4, &version, sizeof(version));
  encoded.bytes = 16;  // whatever that version's hello looks like
  const ControlMessage message = Received(encoded, 0);
  EXPECT_EQ(*DecodeKind(message), HandshakeKind::kHello);
  const absl::Status status = DecodeSetup(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("speaks soft-device protocol 2, the peer 77"),
            absl::string_view::npos)
      << status;
}

TEST(HandshakeTest, TruncatedMessagesAreRefused) {
  const EncodedHandshake whole =
      EncodeSetup(HandshakeKind::kHello, SomeSetup());
  for (size_t bytes = 0; bytes < whole.bytes; ++bytes) {
    EncodedHandshake cut = whole;
    cut.bytes = bytes;
    const ControlMessage message = Received(cut, 2);
    EXPECT_FALSE(DecodeSetup(message).ok()) << bytes;
    EXPECT_EQ(DecodeKind(message).ok(), bytes >= 8) << bytes;
    EXPECT_FALSE(DecodeRejection(message).ok()) << bytes;
  }
}

TEST(HandshakeTest, WrongNumbersOfDescriptorsAreRefused) {
  const EncodedHandshake whole =
      EncodeSetup(HandshakeKind::kHello, SomeSetup());
  EXPECT_FALSE(DecodeSetup(Received(whole, 0)).ok());
  EXPECT_FALSE(DecodeSetup(Received(whole, 1)).ok());
  EXPECT_TRUE(DecodeSetup(Received(whole, 2)).ok());
  ControlMessage truncated = Received(whole, 2);
  truncated.truncated = true;
  EXPECT_FALSE(DecodeSetup(truncated).ok());
}

// Whatever a byte is changed to, the result is an error or within its limits.
TEST(HandshakeTest, ChangedBytesNeverGiveFieldsOutOfRange) {
  const EncodedHandshake whole =
      EncodeSetup(HandshakeKind::kHello, SomeSetup());
  for (size_t at = 0; at < whole.bytes; ++at) {
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      EncodedHandshake changed = whole;
      changed.data[at] = static_cast<std::byte>(value);
      const auto setup = DecodeSetup(Received(changed, 2));
      if (!setup.ok()) continue;
      EXPECT_TRUE(setup->ring_lines == 64 || setup->ring_lines == 128 ||
                  setup->ring_lines == 256);
      EXPECT_LT(setup->send_cq_line, 4096u);
      EXPECT_LT(setup->recv_cq_line, 4096u);
      EXPECT_LE(setup->private_data.size(), kMaxAcceptPrivateData);
      EXPECT_LE(setup->rnr_retry_count, 7);
    }
  }
}

}  // namespace
}  // namespace rdma::soft
