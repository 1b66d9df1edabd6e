#include "tests/software/hostile_client.h"

#include <cstring>

#include "gtest/gtest.h"
#include "rdma_transport/software/shm/listener_names.h"
#include "tests/software/endpoint.h"

namespace rdma::soft {

HostileClient::HostileClient(const SocketAddress& address)
    : device_(*DeviceSegment::Create()),
      link_(*Segment::Create("hostile", LinkSegmentBytes(kRingLines),
                             Sharing::kReadOnlyToPeers, Prefault::kYes)) {
  EXPECT_EQ(ConnectToListener(address, &socket_), ConnectResult::kConnected);
}

SendResult HostileClient::Send(const void* data, size_t bytes,
                               std::initializer_list<int> fds) {
  return SendMessage(socket_.get(), data, bytes, fds);
}

HandshakeSetup HostileClient::GoodSetup() const {
  HandshakeSetup setup;
  setup.qp_num = kQpNum;
  setup.pd = 1;
  setup.ring_lines = kRingLines;
  setup.responder_resources = setup.initiator_depth = 16;
  setup.rnr_retry_count = 7;
  setup.address = *SocketAddress::FromNumeric("127.0.0.1", 40000);
  return setup;
}

SendResult HostileClient::SendHello(const HandshakeSetup& setup) {
  const EncodedHandshake hello = EncodeSetup(HandshakeKind::kHello, setup);
  return Send(hello.data, hello.bytes, {device_fd(), link_fd()});
}

std::unique_ptr<ControlMessage> HostileClient::AwaitAnswer(
    const std::function<void()>& turn) {
  auto message = std::make_unique<ControlMessage>();
  ReceiveResult result = ReceiveResult::kNone;
  EXPECT_TRUE(Until(
      [&] {
        result = ReceiveMessage(socket_.get(), message.get());
        return result != ReceiveResult::kNone;
      },
      turn));
  if (result != ReceiveResult::kMessage) return nullptr;
  return message;
}

LinkControl& HostileClient::control() {
  return *reinterpret_cast<LinkControl*>(link_.base());
}

RingLine& HostileClient::line(uint32_t index) {
  return reinterpret_cast<RingLine*>(link_.base() + sizeof(LinkControl))[index];
}

void HostileClient::WritePacket(const Packet& packet, const void* payload,
                                size_t bytes) {
  for (size_t at = 0; at < bytes; at += kLinePayloadBytes) {
    std::memcpy(line(at / kLinePayloadBytes).payload,
                static_cast<const char*>(payload) + at,
                std::min<size_t>(kLinePayloadBytes, bytes - at));
  }
  line(0).word.store(EncodeWord(packet, 1), std::memory_order_release);
}

}  // namespace rdma::soft
