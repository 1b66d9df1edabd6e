// Goal: a call that was cancelled before its answer was sent is not answered.
// Method: the thread that drives the client's poller is held up where it has
// looked for tasks already; meanwhile the call is cancelled, which leaves a
// task, and then the server answers.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/transport.h"

namespace rdma {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

rpc::TransportFactory& Factory() {
  return **rpc::TransportFactory::ForAddress("rdma://127.0.0.1:0");
}

rpc::TransportOptions SoftwareDevice() {
  rpc::TransportOptions options;
  options.device = "soft";
  return options;
}

rpc::OutgoingFrame OnlyFrame() {
  rpc::OutgoingFrame frame;
  frame.has_message = true;
  frame.end = true;
  return frame;
}

// Answers its first call when it is told to, others never.
class Server final : public rpc::ServerSink {
 public:
  Server()
      : transport_(*Factory().CreateServer(SoftwareDevice())),
        address_(absl::StrCat("rdma://127.0.0.1:",
                              *transport_->AddListeningPort("127.0.0.1:0"))) {
    EXPECT_TRUE(transport_->Start(this).ok());
  }
  ~Server() { transport_->Shutdown(absl::Now()); }

  const std::string& address() const { return address_; }
  bool HasFirstCall() { return first_.came.WaitUntil(absl::Now() + kPatience); }
  // Returns when the answer is on its way.
  void Answer() {
    transport_->Send(first_.handle, OnlyFrame());
    EXPECT_TRUE(first_.closed.WaitUntil(absl::Now() + kPatience));
  }

 private:
  struct Sink final : rpc::CallSink {
    void OnFrame(rpc::IncomingFrame&) override {}
    void OnClosed(const rpc::CallOutcome&) override { closed.Set(); }
    rpc::CallHandle handle;
    rpc::Event came;
    rpc::Event closed;
  };

  const void* OnMethod(std::string_view, uint32_t) override { return this; }
  rpc::CallSink* OnCall(const Call& call, rpc::IncomingFrame&) override {
    Sink& sink = had_first_.exchange(true) ? other_ : first_;
    sink.handle = call.handle;
    sink.came.Set();
    return &sink;
  }

  std::atomic<bool> had_first_{false};
  Sink first_;
  Sink other_;
  const std::unique_ptr<rpc::ServerTransport> transport_;
  const std::string address_;
};

// Holds up the thread that drives, when its call ends.
struct HoldUp final : rpc::CallSink {
  void OnFrame(rpc::IncomingFrame&) override {}
  void OnClosed(const rpc::CallOutcome&) override {
    began.Set();
    EXPECT_TRUE(may_end.WaitUntil(absl::Now() + kPatience));
  }

  rpc::Event began;
  rpc::Event may_end;
};

struct Outcome final : rpc::CallSink {
  void OnFrame(rpc::IncomingFrame&) override { answered = true; }
  void OnClosed(const rpc::CallOutcome& outcome) override {
    code = outcome.status.code();
    closed.Set();
  }

  bool answered = false;
  absl::StatusCode code = absl::StatusCode::kOk;
  rpc::Event closed;
};

TEST(CancelOrderTest, WhatIsCancelledFirstIsNotAnswered) {
  Server server;
  const std::unique_ptr<rpc::ClientTransport> client =
      *Factory().CreateClient(server.address(), SoftwareDevice());
  const uint32_t method = client->RegisterMethod("/test.Service/Method");
  Outcome outcome;
  const rpc::CallHandle call =
      client->StartCall({.method = method}, OnlyFrame(), &outcome);
  std::thread waiter([&] { client->Wait(outcome.closed); });
  EXPECT_TRUE(server.HasFirstCall());
  // Whether the server hears of it before it ends is all the same.
  HoldUp hold_up;
  client->StartCall({.method = method,
                     .deadline = absl::Now() + absl::Milliseconds(200),
                     .quick = true},
                    OnlyFrame(), &hold_up);

  EXPECT_TRUE(hold_up.began.WaitUntil(absl::Now() + kPatience));
  client->Cancel(call, absl::CancelledError("by the test"));
  server.Answer();
  hold_up.may_end.Set();
  waiter.join();
  EXPECT_FALSE(outcome.answered);
  EXPECT_EQ(outcome.code, absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace rdma
