// Goal: what one end encodes the other decodes, byte for byte as specified, and
// nothing else is taken for a message. Method: every field at its place, single
// fields out of range, and random bytes.
#include "rdma_transport/hardware/setup_message.h"

#include <cstring>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace rdma {
namespace {

SetupMessage Accept() {
  SetupMessage message;
  message.kind = SetupMessage::Kind::kAccept;
  message.mtu = IBV_MTU_4096;
  message.qp_num = 0x123456;
  message.psn = 0xabcdef;
  for (int i = 0; i < 16; ++i) message.gid.raw[i] = static_cast<uint8_t>(i + 1);
  message.lid = 0x7788;
  message.responder_resources = 16;
  message.initiator_depth = 4;
  message.retry_count = 6;
  message.rnr_retry_count = 7;
  message.private_data = "hello";
  return message;
}

TEST(SetupMessageTest, ComesBackAsItWas) {
  const SetupMessage sent = Accept();
  const absl::StatusOr<SetupMessage> came = Decode(Encode(sent));
  ASSERT_TRUE(came.ok()) << came.status();
  EXPECT_EQ(came->kind, sent.kind);
  EXPECT_EQ(came->mtu, sent.mtu);
  EXPECT_EQ(came->qp_num, sent.qp_num);
  EXPECT_EQ(came->psn, sent.psn);
  EXPECT_EQ(std::memcmp(came->gid.raw, sent.gid.raw, 16), 0);
  EXPECT_EQ(came->lid, sent.lid);
  EXPECT_EQ(came->responder_resources, sent.responder_resources);
  EXPECT_EQ(came->initiator_depth, sent.initiator_depth);
  EXPECT_EQ(came->retry_count, sent.retry_count);
  EXPECT_EQ(came->rnr_retry_count, sent.rnr_retry_count);
  EXPECT_EQ(came->private_data, sent.private_data);
}

// The layout of the header's comment, which other implementations rely on.
TEST(SetupMessageTest, HasTheSpecifiedLayout) {
  const SetupMessageBytes bytes = Encode(Accept());
  const uint8_t expected[] = {
      'V',  'b',  'Q',  'P',  1,    2,    5,    5,  // magic ... MTU
      0x00, 0x12, 0x34, 0x56, 0x00, 0xab, 0xcd, 0xef,
      1,    2,    3,    4,    5,    6,    7,    8,  // GID
      9,    10,   11,   12,   13,   14,   15,   16,
      0x77, 0x88, 16,   4,    6,    7,    0,    0,  // LID ... zero
      'h',  'e',  'l',  'l',  'o',  0};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
  EXPECT_EQ(bytes.size(), 236u);
}

TEST(SetupMessageTest, CarriesAsMuchPrivateDataAsItsKindMay) {
  const struct {
    SetupMessage::Kind kind;
    size_t bytes;
  } rows[] = {{SetupMessage::Kind::kRequest, kMaxConnectPrivateData},
              {SetupMessage::Kind::kAccept, kMaxAcceptPrivateData},
              {SetupMessage::Kind::kReject, kMaxRejectPrivateData},
              {SetupMessage::Kind::kReady, 0}};
  for (const auto& row : rows) {
    SetupMessage message = Accept();
    message.kind = row.kind;
    message.private_data = std::string(row.bytes, 'x');
    SetupMessageBytes bytes = Encode(message);
    const absl::StatusOr<SetupMessage> came = Decode(bytes);
    ASSERT_TRUE(came.ok()) << came.status();
    EXPECT_EQ(came->private_data, message.private_data);
    bytes[6] = static_cast<uint8_t>(row.bytes + 1);
    EXPECT_FALSE(Decode(bytes).ok()) << row.bytes;
  }
}

TEST(SetupMessageTest, RefusesFieldsOutOfRange) {
  const struct {
    size_t offset;
    uint8_t value;
  } rows[] = {{0, 'v'}, {3, 'X'}, {4, 0},   {4, 2},    {5, 0},
              {5, 5},   {7, 0},   {7, 6},   {8, 1},    {12, 1},
              {36, 8},  {37, 8},  {6, 197}, {6, 0xff}, {7, 0xff}};
  for (const auto& row : rows) {
    SetupMessageBytes bytes = Encode(Accept());
    bytes[row.offset] = row.value;
    EXPECT_EQ(Decode(bytes).status().code(), absl::StatusCode::kInvalidArgument)
        << "offset " << row.offset;
  }
}

// Any bytes end in a status or in a message that encodes to the same fields.
TEST(SetupMessageTest, TakesRandomBytes) {
  std::mt19937 random(20240611);
  int decoded = 0;
  for (int round = 0; round < 20000; ++round) {
    SetupMessageBytes bytes = Encode(Accept());
    const int changes = static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    const absl::StatusOr<SetupMessage> message = Decode(bytes);
    if (!message.ok()) continue;
    ++decoded;
    const absl::StatusOr<SetupMessage> again = Decode(Encode(*message));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->qp_num, message->qp_num);
    EXPECT_EQ(again->private_data, message->private_data);
  }
  EXPECT_GT(decoded, 5000);
}

}  // namespace
}  // namespace rdma
