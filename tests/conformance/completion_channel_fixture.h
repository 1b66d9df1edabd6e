// The fixture of the tests of completion events: arm, sleep, look.
//
//   Arm(server().recv_cq());
//   EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
//
// The server sleeps: nothing polls its CQs but the test. Where a test waits for
// an event it does so in poll(2) on the channel, and drives nothing but the
// other end.
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_CONFORMANCE_COMPLETION_CHANNEL_FIXTURE_H_
#define VERBENA_TESTS_CONFORMANCE_COMPLETION_CHANNEL_FIXTURE_H_

#include <poll.h>

#include <cerrno>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {

class CompletionChannelFixture : public ConnectedTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectedTest::SetUp());
    Sleep(server());
  }

  // From now on nothing polls the side's CQs but the test itself.
  void Sleep(Side& side) {
    pump().Unwatch(side.send_cq());
    pump().Unwatch(side.recv_cq());
  }

  static void Arm(ibv_cq* cq, bool solicited_only = false) {
    ASSERT_EQ(0, ibv_req_notify_cq(cq, solicited_only ? 1 : 0));
  }

  // Sleeps on the channel until a CQ reports itself, drives the other end the
  // while, and acknowledges. Null and a failed test if patience ends.
  // REQUIRES: Sleep(side)
  ibv_cq* AwaitEvent(Side& side) {
    ibv_cq* found = nullptr;
    void* context = nullptr;
    pollfd descriptor = {.fd = side.channel()->fd, .events = POLLIN};
    pump().Unwatch(&side.manager());
    pump().Until(
        [&] {
          poll(&descriptor, 1, 1);
          return side.device().GetCqEvent(side.channel(), &found, &context) ==
                 0;
        },
        "a completion event");
    pump().Watch(&side.manager());
    if (found != nullptr) side.device().AckCqEvents(found, 1);
    return found;
  }

  // Takes what events there are; none is waited for.
  void DiscardEvents(Side& side) {
    ibv_cq* found = nullptr;
    void* context = nullptr;
    while (side.device().GetCqEvent(side.channel(), &found, &context) == 0) {
      side.device().AckCqEvents(found, 1);
    }
  }

  void ExpectNoEvent(Side& side) {
    pump().TurnFor(pump().silence());
    ibv_cq* found = nullptr;
    void* context = nullptr;
    errno = 0;
    const int result =
        side.device().GetCqEvent(side.channel(), &found, &context);
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, EAGAIN);
    if (result == 0) side.device().AckCqEvents(found, 1);
  }

  ibv_wc PollOne(ibv_cq* cq) {
    ibv_wc wc = {};
    wc.wr_id = ~uint64_t{0};
    pump().Until([&] { return ibv_poll_cq(cq, 1, &wc) == 1; }, "a completion");
    return wc;
  }
  void ExpectEmpty(ibv_cq* cq) {
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  }

  void Send(uint64_t wr_id) {
    ASSERT_EQ(0,
              Post(client_qp_,
                   SendWr(wr_id).Sge(client_buffer_.sge(0, 8)).Unsignaled()));
  }
};

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_COMPLETION_CHANNEL_FIXTURE_H_
