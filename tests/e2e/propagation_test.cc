// Goal: a call that a handler makes for the call that it serves ends with it:
// by its deadline, when it is cancelled, and when it is over; as far as
// PropagationOptions say so.
// Method: a front server whose handlers are the tests' own functions, and a
// back one whose handlers block, and count who was cut off.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/streams.rpc.pb.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

// Block and Sleep are the tests'; a thread is blocked in the one, none in the
// other.
using FrontBase = Probe::WithCallbackMethod_Sleep<Probe::Service>;
class Front final : public FrontBase {
 public:
  std::function<rpc::Status(rpc::ServerContext*)> on_block;
  std::function<rpc::ServerUnaryReactor*(rpc::CallbackServerContext*)> on_sleep;

 private:
  rpc::Status Block(rpc::ServerContext* context, const Blob* request,
                    Nothing* response) override {
    return on_block(context);
  }
  rpc::ServerUnaryReactor* Sleep(rpc::CallbackServerContext* context,
                                 const Nap* request,
                                 Nothing* response) override {
    return on_sleep(context);
  }
};

class PropagationTest : public testing::Test {
 protected:
  PropagationTest()
      : streams_(ServeBlockingStreams(&progress_)),
        back_({}, ServerUri(), &streams_->service()),
        client_(back_.address()),
        streams_stub_(Streams::NewStub(client_.shared_channel())) {
    rpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(ServerUri(), rpc::InsecureServerCredentials(),
                             &port);
    builder.AddChannelArgument("verbena.device",
                               TheDeviceUnderTest().server_device);
    builder.RegisterService(&front_);
    server_ = builder.BuildAndStart();
    front_client_ = std::make_unique<Client>(ServerUri(port));
  }

  // So that a call with a short time does not spend it on connecting. When
  // front_ is complete, whose handlers may run from then on.
  void Connect() {
    for (const Client* const client : {&client_, front_client_.get()}) {
      EXPECT_TRUE(
          client->channel().WaitForConnected(absl::Now() + absl::Seconds(20)));
    }
  }

  // A blocking call of the back server, by a handler of the front.
  rpc::Status CallBack(rpc::ClientContext* context) {
    Nothing response;
    return client_.stub().Block(context, Blob(), &response);
  }
  int64_t BlockedAtTheBack() { return client_.Observe().blocked(); }

  // The front's handler calls the back like this, and says what came of it.
  void ForwardWith(
      std::function<std::unique_ptr<rpc::ClientContext>(rpc::ServerContext*)>
          make_context) {
    front_.on_block = [this, make = std::move(make_context)](
                          rpc::ServerContext* server_context) {
      const std::unique_ptr<rpc::ClientContext> context = make(server_context);
      child_status_ = CallBack(context.get());
      handler_returned_.Notify();
      return rpc::Status::OK;
    };
    Connect();
  }

  // The front is called, and that call cancelled when `ready` says so.
  void CallFrontAndCancel(const std::function<bool()>& ready) {
    rpc::ClientContext context;
    std::thread caller([&] {
      Nothing response;
      EXPECT_TRUE(
          HasCode(front_client_->stub().Block(&context, Blob(), &response),
                  rpc::StatusCode::CANCELLED));
    });
    EXPECT_TRUE(Eventually(ready));
    context.TryCancel();
    caller.join();
  }

  StreamsProgress progress_;
  const std::unique_ptr<ServedStreams> streams_;
  Server back_;
  Client client_;
  const std::unique_ptr<Streams::Stub> streams_stub_;
  Front front_;
  rpc::Status child_status_;
  absl::Notification handler_returned_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Client> front_client_;
};

TEST_F(PropagationTest, CancellingACallCancelsThoseOfItsHandler) {
  ForwardWith([](rpc::ServerContext* context) {
    return rpc::ClientContext::FromServerContext(*context);
  });
  CallFrontAndCancel([&] { return BlockedAtTheBack() == 1; });
  handler_returned_.WaitForNotification();
  EXPECT_TRUE(HasCode(child_status_, rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(Eventually([&] { return client_.Observe().cut_off() == 1; }));
}

TEST_F(PropagationTest, CancellingACallCancelsStreamsOfItsHandler) {
  absl::Notification reading;
  front_.on_block = [&](rpc::ServerContext* server_context) {
    const auto context = rpc::ClientContext::FromServerContext(*server_context);
    const auto stream = streams_stub_->Chat(context.get());
    EXPECT_TRUE(stream->Write(Item()));
    Item item;
    EXPECT_TRUE(stream->Read(&item));
    reading.Notify();
    EXPECT_FALSE(stream->Read(&item));
    child_status_ = stream->Finish();
    handler_returned_.Notify();
    return rpc::Status::OK;
  };
  CallFrontAndCancel([&] { return reading.HasBeenNotified(); });
  handler_returned_.WaitForNotification();
  EXPECT_TRUE(HasCode(child_status_, rpc::StatusCode::CANCELLED));
}

TEST_F(PropagationTest, AChildOfACancelledCallDoesNotRun) {
  absl::Notification called;
  front_.on_block = [&](rpc::ServerContext* server_context) {
    called.Notify();
    EXPECT_TRUE(Eventually([&] { return server_context->IsCancelled(); }));
    const auto context = rpc::ClientContext::FromServerContext(*server_context);
    child_status_ = CallBack(context.get());
    handler_returned_.Notify();
    return rpc::Status::OK;
  };
  CallFrontAndCancel([&] { return called.HasBeenNotified(); });
  handler_returned_.WaitForNotification();
  EXPECT_TRUE(HasCode(child_status_, rpc::StatusCode::CANCELLED));
}

TEST_F(PropagationTest, CancellingAChildLeavesItsParentAlone) {
  front_.on_block = [&](rpc::ServerContext* server_context) {
    const auto context = rpc::ClientContext::FromServerContext(*server_context);
    std::thread canceller([&] {
      EXPECT_TRUE(Eventually([&] { return BlockedAtTheBack() == 1; }));
      context->TryCancel();
    });
    child_status_ = CallBack(context.get());
    canceller.join();
    handler_returned_.Notify();
    return rpc::Status::OK;
  };
  EXPECT_OK(front_client_->Block(absl::Seconds(30)));
  handler_returned_.WaitForNotification();
  EXPECT_TRUE(HasCode(child_status_, rpc::StatusCode::CANCELLED));
}

TEST_F(PropagationTest, AChildHasItsParentsDeadline) {
  ForwardWith([](rpc::ServerContext* context) {
    return rpc::ClientContext::FromServerContext(
        *context, rpc::PropagationOptions().disable_cancellation_propagation());
  });
  EXPECT_TRUE(HasCode(front_client_->Block(absl::Milliseconds(500)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  handler_returned_.WaitForNotification();
  EXPECT_TRUE(HasCode(child_status_, rpc::StatusCode::DEADLINE_EXCEEDED));
}

TEST_F(PropagationTest, AChildsOwnDeadlineCountsWhereItIsEarlier) {
  ForwardWith([](rpc::ServerContext* server_context) {
    auto context = rpc::ClientContext::FromServerContext(*server_context);
    context->set_deadline(absl::Now() + absl::Milliseconds(200));
    return context;
  });
  EXPECT_OK(front_client_->Block(absl::Seconds(30)));
  handler_returned_.WaitForNotification();
  EXPECT_TRUE(HasCode(child_status_, rpc::StatusCode::DEADLINE_EXCEEDED));
}

TEST_F(PropagationTest, ALaterDeadlineOfAChildDoesNotCount) {
  ForwardWith([](rpc::ServerContext* server_context) {
    auto context = rpc::ClientContext::FromServerContext(*server_context);
    context->set_deadline(absl::Now() + absl::Seconds(30));
    return context;
  });
  EXPECT_TRUE(HasCode(front_client_->Block(absl::Milliseconds(500)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  handler_returned_.WaitForNotification();
  EXPECT_FALSE(child_status_.ok());
}

TEST_F(PropagationTest, NothingIsPropagatedWhereNotWanted) {
  ForwardWith([](rpc::ServerContext* context) {
    return rpc::ClientContext::FromServerContext(
        *context, rpc::PropagationOptions()
                      .disable_cancellation_propagation()
                      .disable_deadline_propagation());
  });
  EXPECT_TRUE(HasCode(front_client_->Block(absl::Milliseconds(200)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_TRUE(Eventually([&] { return BlockedAtTheBack() == 1; }));
  EXPECT_OK(client_.ReleaseBlocked());
  handler_returned_.WaitForNotification();
  EXPECT_OK(child_status_);
}

// The callback API's child is still there when its parent was answered.
TEST_F(PropagationTest, AChildEndsWhenItsParentIsOver) {
  std::unique_ptr<rpc::ClientContext> context;
  const Blob request;
  Nothing response;
  absl::Notification child_over;
  front_.on_sleep = [&](rpc::CallbackServerContext* server_context) {
    context = rpc::ClientContext::FromCallbackServerContext(*server_context);
    client_.stub().async()->Block(context.get(), &request, &response,
                                  [&](rpc::Status status) {
                                    child_status_ = std::move(status);
                                    child_over.Notify();
                                  });
    rpc::ServerUnaryReactor* const reactor = server_context->DefaultReactor();
    reactor->Finish(rpc::Status::OK);
    return reactor;
  };
  EXPECT_OK(front_client_->Sleep(absl::ZeroDuration()));
  child_over.WaitForNotification();
  EXPECT_TRUE(HasCode(child_status_, rpc::StatusCode::CANCELLED));
}

TEST_F(PropagationTest, CancellingACallCancelsThoseOfAReactor) {
  std::unique_ptr<rpc::ClientContext> context;
  const Blob request;
  Nothing response;
  front_.on_sleep = [&](rpc::CallbackServerContext* server_context) {
    context = rpc::ClientContext::FromCallbackServerContext(*server_context);
    rpc::ServerUnaryReactor* const reactor = server_context->DefaultReactor();
    client_.stub().async()->Block(context.get(), &request, &response,
                                  [&, reactor](rpc::Status status) {
                                    child_status_ = std::move(status);
                                    context.reset();
                                    handler_returned_.Notify();
                                    reactor->Finish(rpc::Status::OK);
                                  });
    return reactor;
  };
  Connect();
  TimedContext parent(absl::Milliseconds(500));
  EXPECT_TRUE(HasCode(front_client_->stub().Sleep(&parent, Nap(), &response),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  handler_returned_.WaitForNotification();
  EXPECT_FALSE(child_status_.ok());
}

// A child may be over, and its channel gone, at the moment its parent ends.
TEST_F(PropagationTest, ChildrenThatEndRaceWithParentsThatAreCancelled) {
  front_.on_block = [&](rpc::ServerContext* server_context) {
    const auto context = rpc::ClientContext::FromServerContext(*server_context);
    const Client brief(back_.address());
    Blob response;
    (void)brief.stub().Echo(context.get(), Blob(), &response);
    return rpc::Status::OK;
  };
  for (int i = 0; i < TheDeviceUnderTest().Rounds(300); ++i) {
    (void)front_client_->Block(absl::Microseconds(100 + 7 * i));
  }
  EXPECT_OK(front_client_->Block(absl::Seconds(30)));
}

}  // namespace
}  // namespace e2e
