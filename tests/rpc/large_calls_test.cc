// Goal: a warm large call meets memory that is mapped: its messages on the
// server are those of the one before. One with small messages does not keep
// memory that it has no use for. Method: handlers say where their messages'
// bytes are.
#include <cstddef>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo.rpc.pb.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

// Where the messages of the last call were, and what they have memory for.
struct Seen {
  const char* request = nullptr;
  const char* response = nullptr;
  size_t request_capacity = 0;
  size_t response_capacity = 0;

  void Note(const SayRequest& from, const SayResponse& to) {
    request = from.text().data();
    response = to.text().data();
    request_capacity = from.text().capacity();
    response_capacity = to.text().capacity();
  }
};

class SyncService final : public Echo::Service {
 public:
  explicit SyncService(Seen* seen) : seen_(*seen) {}

 private:
  Status Say(ServerContext*, const SayRequest* request,
             SayResponse* response) override {
    response->set_text(request->text());
    seen_.Note(*request, *response);
    return Status::OK;
  }

  Seen& seen_;
};

class CallbackService final : public Echo::CallbackService {
 public:
  explicit CallbackService(Seen* seen) : seen_(*seen) {}

 private:
  ServerUnaryReactor* Say(CallbackServerContext* context,
                          const SayRequest* request,
                          SayResponse* response) override {
    response->set_text(request->text());
    seen_.Note(*request, *response);
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(Status::OK);
    return reactor;
  }

  Seen& seen_;
};

class LargeCallsTest : public ::testing::TestWithParam<bool> {
 protected:
  LargeCallsTest() {
    if (GetParam()) {
      service_ = std::make_unique<CallbackService>(&seen_);
    } else {
      service_ = std::make_unique<SyncService>(&seen_);
    }
    echo_ = std::make_unique<EchoServer>(LoopbackOptions(), service_.get());
  }

  Seen Say(size_t bytes) {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.set_text(std::string(bytes, 'x'));
    EXPECT_TRUE(echo_->stub().Say(&context, request, &response).ok());
    EXPECT_EQ(response.text(), request.text());
    return seen_;
  }

 private:
  Seen seen_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<EchoServer> echo_;
};

TEST_P(LargeCallsTest, TheNextLargeOneHasTheMemoryOfTheLast) {
  Say(100);
  const Seen first = Say(kLarge);
  for (const size_t bytes : {kLarge, kLarge / 2, kLarge}) {
    const Seen next = Say(bytes);
    EXPECT_EQ(next.request, first.request);
    EXPECT_EQ(next.response, first.response);
    // Small ones between them have their own.
    const Seen small = Say(100);
    EXPECT_NE(small.request, first.request);
    EXPECT_NE(small.response, first.response);
  }
}

TEST_P(LargeCallsTest, SmallOnesKeepLittle) {
  Say(kLarge);
  // There is nothing else to take, but not for long.
  EXPECT_GE(Say(100).request_capacity, kLarge);
  for (int i = 0; i < 3; ++i) {
    const Seen small = Say(100);
    EXPECT_LT(small.request_capacity, kLarge);
    EXPECT_LT(small.response_capacity, kLarge);
  }
}

INSTANTIATE_TEST_SUITE_P(Apis, LargeCallsTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Callback" : "Sync";
                         });

}  // namespace
}  // namespace rpc::testing
