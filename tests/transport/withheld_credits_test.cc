// Goal: a client that opens calls without end, and takes nothing of what it is
// answered, costs a bounded amount of memory; another one is served meanwhile.
// Method: frames written by hand, over the software device, that grant a credit
// at a time: enough for the server to grant further ones, not for an answer.
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/frame.h"
#include "tests/transport/connection_side.h"
#include "tests/transport/frame_builder.h"

namespace rdma {
namespace {

using testing::Bytes;
using testing::Eventually;
using testing::Side;
using testing::ToBytes;

// Beyond what may wait.
constexpr int kFarTooMany = 250'000;
constexpr uint32_t kSlots = 4'096;

// Uses the QP of a side's one connection behind its back. Thread rule: the
// side's driver, which does nothing else meanwhile.
class HostileClient {
 public:
  explicit HostileClient(Side* side)
      : side_(*side), qp_(side->device().qps().front()) {}

  // Opens calls until it may not, and has the server grant further ones. False:
  // it does not any more.
  bool OpenAsManyAsGranted() {
    while (granted_ > 1) {
      if (!Open(/*credits=*/0)) return false;
    }
    return Open(/*credits=*/1) && WaitForGrant();
  }
  int opened() const { return opened_; }

 private:
  bool Open(uint16_t credits) {
    FrameFields fields;
    fields.kind = FrameKind::kOpen;
    fields.flags = kEnd | kHasMessage | kWantCredits;
    if (opened_ == 0) {
      fields.flags |= kMethodDefinition;
      fields.method_path = "/test.Test/Method";
    }
    fields.slot = static_cast<uint32_t>(opened_) % kSlots;
    fields.call_sequence = static_cast<uint32_t>(++opened_);
    fields.credits = credits;
    fields.message_bytes = 1;
    --granted_;
    return Post(fields, testing::MakePayload(fields, {}, ToBytes("x"), {}));
  }

  bool Post(const FrameFields& fields, Bytes payload) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(payload.data()),
                   static_cast<uint32_t>(payload.size()), 0};
    ibv_send_wr wr = {};
    wr.wr_id = 1;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    wr.imm_data = htonl(EncodeTag(fields));
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp_, &wr, &bad) != 0) return false;
    const int sent = sent_;
    return Poll([&] { return sent_ > sent; });
  }

  bool WaitForGrant() {
    return Poll([&] { return granted_ > 0; });
  }

  // Takes completions until `done`. False: the connection is at its end.
  template <typename Done>
  bool Poll(Done done) {
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    while (!done() && !broken_ && absl::Now() < give_up) {
      ibv_wc wc;
      if (ibv_poll_cq(side_.device().cq(), 1, &wc) > 0) {
        Take(wc);
      } else {
        std::this_thread::yield();  // to the server
      }
    }
    return done() && !broken_;
  }

  void Take(const ibv_wc& wc) {
    if ((wc.wr_id & 1) != 0) {
      ++sent_;
      broken_ |= wc.status != IBV_WC_SUCCESS;
    } else if (wc.status != IBV_WC_SUCCESS) {
      side_.poller().receive_pool().Discard(wc.wr_id);
      broken_ = true;
    } else {
      const rpc::Buffer buffer =
          side_.poller().receive_pool().Take(wc.wr_id, wc.byte_len);
      FrameView view;
      EXPECT_EQ(DecodeFrame(ntohl(wc.imm_data), {buffer.data(), buffer.size()},
                            &view),
                nullptr);
      granted_ += view.fields.credits;
      side_.poller().receive_pool().Replenish();
    }
  }

  Side& side_;
  ibv_qp* const qp_;
  int opened_ = 0;
  int sent_ = 0;
  int granted_ = 3;  // of the handshake
  bool broken_ = false;
};

class WithheldCreditsTest : public ::testing::Test {
 protected:
  WithheldCreditsTest() {
    server_.Listen();
    EXPECT_TRUE(hostile_.Connect(server_.address()).ok());
    EXPECT_TRUE(Eventually([&] { return hostile_.up() == 1; }));
  }

  // How many calls the server takes. `after_first`: to be done after some.
  int OpenUntilItEnds(absl::FunctionRef<void()> after_first = [] {}) {
    int opened = 0;
    hostile_.Do([&] {
      HostileClient client(&hostile_);
      EXPECT_TRUE(client.OpenAsManyAsGranted());
      after_first();
      while (client.opened() < kFarTooMany && client.OpenAsManyAsGranted()) {
      }
      opened = client.opened();
    });
    return opened;
  }

  // REQUIRES: the server has a call.
  void RefuseFurtherCalls() {
    server_.Do([this] {
      Connection* connection = nullptr;
      server_.poller().calls().ForEach([&](Call& call) {
        if (call.connection != nullptr) connection = call.connection;
      });
      ASSERT_NE(connection, nullptr);
      connection->EndCalls(absl::UnavailableError("by the test"));
    });
  }

  Side server_;
  Side hostile_;
};

TEST_F(WithheldCreditsTest, AnswersThatWaitForThemAreBounded) {
  Side honest;
  const absl::StatusOr<Connection*> connection =
      honest.Connect(server_.address());
  ASSERT_TRUE(connection.ok());
  EXPECT_TRUE(Eventually([&] { return honest.up() == 1; }));
  int opened = 0;
  std::thread opener([&] { opened = OpenUntilItEnds(); });
  for (int i = 1; i <= 100; ++i) {
    honest.Open(*connection);
    EXPECT_TRUE(Eventually([&] { return honest.answered() == i; }));
  }
  opener.join();
  EXPECT_GT(opened, 65'536) << "what an honest client may have open";
  EXPECT_LT(opened, 200'000);
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
  EXPECT_TRUE(absl::StrContains(server_.last_down().message(),
                                "does not take what it is sent"))
      << server_.last_down();
  honest.Open(*connection);
  EXPECT_TRUE(Eventually([&] { return honest.answered() == 101; }));
}

TEST_F(WithheldCreditsTest, ResetsAreToo) {
  server_.AnswerAtOnce(false);
  const int opened = OpenUntilItEnds([this] { RefuseFurtherCalls(); });
  EXPECT_GT(opened, 65'536);
  EXPECT_LT(opened, 200'000);
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
}

}  // namespace
}  // namespace rdma
