// Goal: a peer that goes on after it has said that this was all harms nobody:
// what it sends is ignored, the call goes on, and so does the connection.
// Method: two sides over the software device, of which the client forgets that
// it has ended its direction.
#include <cstddef>
#include <cstdint>

#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::Side;

constexpr char kMethod[] = "/test.Test/Method";
constexpr size_t kSmall = 100;
constexpr size_t kLarge = 1 << 20;  // offered

class HalfCloseTest : public ::testing::Test {
 protected:
  HalfCloseTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
    connection_ = client_.ConnectTo(server_);
  }

  // A call of one frame, or a stream of two.
  rpc::CallHandle OpenAndHalfClose(bool at_once) {
    const int before = server_.frames();
    const rpc::CallHandle call =
        client_.Open(connection_, 1, kMethod, 0, /*end=*/at_once);
    if (!at_once) client_.SendMore(call, kSmall, /*end=*/true);
    const int frames = at_once ? 1 : 2;
    EXPECT_TRUE(
        Eventually([&] { return server_.frames() == before + frames; }));
    return call;
  }

  void SendAllTheSame(rpc::CallHandle call, size_t bytes, bool end) {
    client_.Do([&] {
      Call& made = *client_.poller().calls().Find(call);
      made.sent_end = false;
      made.send_window = int64_t{1} << 40;
      client_.SendMore(call, bytes, end);
    });
  }

  // What was sent before has arrived: the connection keeps the order.
  void ExpectAnotherCallArrives() {
    const int before = server_.opened();
    const int frames = server_.frames();
    client_.Open(connection_);
    EXPECT_TRUE(Eventually([&] {
      return server_.opened() == before + 1 && server_.frames() > frames;
    }));
  }

  void ExpectAllAnswered() {
    server_.Answer();
    EXPECT_TRUE(Eventually([&] {
      return client_.answered() == server_.opened();
    })) << client_.last_failure();
    EXPECT_EQ(client_.failed() + client_.down() + server_.down(), 0)
        << client_.last_failure() << client_.last_down() << server_.last_down();
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
};

TEST_F(HalfCloseTest, WhatComesLaterIsIgnored) {
  for (const bool at_once : {true, false}) {
    for (const bool end : {true, false}) {
      for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
        const rpc::CallHandle call = OpenAndHalfClose(at_once);
        const int frames = server_.frames();
        SendAllTheSame(call, bytes, end);
        ExpectAnotherCallArrives();
        EXPECT_EQ(server_.frames(), frames + 1) << bytes << " bytes";
        ExpectAllAnswered();
      }
    }
  }
}

TEST_F(HalfCloseTest, AnyNumberIsIgnored) {
  const rpc::CallHandle call = OpenAndHalfClose(/*at_once=*/false);
  const int frames = server_.frames();
  // Far beyond the stream's window.
  for (int i = 0; i < 500; ++i) SendAllTheSame(call, 1'000, /*end=*/false);
  ExpectAnotherCallArrives();
  EXPECT_EQ(server_.frames(), frames + 1);
  ExpectAllAnswered();
}

}  // namespace
}  // namespace rdma
