// Goal: a handler that throws ends its call with UNKNOWN, and neither the
// process nor other calls; nor does a client's callback. Method: services whose
// handlers do nothing else, of the blocking and of the callback API, and a call
// of each kind.
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interceptors.h"
#include "tests/e2e/streams.rpc.pb.h"

namespace e2e {
namespace {

[[noreturn]] void Throw() { throw std::runtime_error("not for clients"); }

class BlockingProbe final : public Probe::Service {
  rpc::Status Echo(rpc::ServerContext*, const Blob*, Blob*) override {
    throw 5;
  }
};

class BlockingStreams final : public Streams::Service {
  rpc::Status Count(rpc::ServerContext*, const Order*,
                    rpc::ServerWriter<Item>* writer) override {
    writer->Write(Item());
    Throw();
  }
  rpc::Status Sum(rpc::ServerContext*, rpc::ServerReader<Item>*,
                  Total*) override {
    Throw();
  }
  rpc::Status Chat(rpc::ServerContext*,
                   rpc::ServerReaderWriter<Item, Item>*) override {
    Throw();
  }
};

class CallbackProbe final : public Probe::CallbackService {
  rpc::ServerUnaryReactor* Echo(rpc::CallbackServerContext*, const Blob*,
                                Blob*) override {
    throw 5;
  }
};

class CallbackStreams final : public Streams::CallbackService {
  rpc::ServerWriteReactor<Item>* Count(rpc::CallbackServerContext*,
                                       const Order*) override {
    Throw();
  }
  rpc::ServerReadReactor<Item>* Sum(rpc::CallbackServerContext*,
                                    Total*) override {
    Throw();
  }
  rpc::ServerBidiReactor<Item, Item>* Chat(
      rpc::CallbackServerContext*) override {
    Throw();
  }
};

class ThrowingHandlersTest : public testing::TestWithParam<bool> {
 protected:
  ThrowingHandlersTest() {
    if (GetParam()) {
      probe_ = std::make_unique<CallbackProbe>();
      streams_ = std::make_unique<CallbackStreams>();
    } else {
      probe_ = std::make_unique<BlockingProbe>();
      streams_ = std::make_unique<BlockingStreams>();
    }
    rpc::ServerBuilder builder;
    builder.RegisterService(probe_.get());
    builder.RegisterService(streams_.get());
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel(rpc::ChannelArguments());
    stub_ = Streams::NewStub(channel_);
  }

  static void ExpectUnknown(const rpc::Status& status) {
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNKNOWN));
    EXPECT_EQ(status.error_message().find("not for clients"),
              std::string::npos);
  }

  std::unique_ptr<rpc::Service> probe_;
  std::unique_ptr<rpc::Service> streams_;
  std::unique_ptr<rpc::Server> server_;
  std::shared_ptr<rpc::Channel> channel_;
  std::unique_ptr<Streams::Stub> stub_;
};

TEST_P(ThrowingHandlersTest, Unary) {
  for (int i = 0; i < 3; ++i) {
    TimedContext context;
    Blob response;
    ExpectUnknown(Probe::NewStub(channel_)->Echo(&context, Blob(), &response));
  }
}

TEST_P(ThrowingHandlersTest, ServerStreaming) {
  TimedContext context;
  const auto reader = stub_->Count(&context, Order());
  Item item;
  int items = 0;
  while (reader->Read(&item)) ++items;
  EXPECT_EQ(items, GetParam() ? 0 : 1);  // what it had written came
  ExpectUnknown(reader->Finish());
}

TEST_P(ThrowingHandlersTest, ClientStreaming) {
  TimedContext context;
  Total total;
  const auto writer = stub_->Sum(&context, &total);
  writer->Write(Item());
  ExpectUnknown(writer->Finish());
}

TEST_P(ThrowingHandlersTest, Bidi) {
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  stream->Write(Item());
  ExpectUnknown(stream->Finish());
}

void CallAndThrow(Probe::Stub& stub) {
  TimedContext context;
  const Nothing request;
  Observation response;
  absl::Notification done;
  stub.async()->Observe(&context, &request, &response,
                        [&](const rpc::Status& status) {
                          EXPECT_OK(status);
                          done.Notify();
                          throw 5;
                        });
  done.WaitForNotification();
}

TEST(ThrowingCallbackTest, IsLeftBehind) {
  Server server;
  const Client client(server.address());
  for (int i = 0; i < 3; ++i) CallAndThrow(client.stub());
}

TEST(ThrowingCallbackTest, IsLeftBehindWithInterceptors) {
  Server server;
  const auto stub = Probe::NewStub(InterceptedChannel(
      server.address(), {[](Batch* batch) { batch->Proceed(); }}));
  for (int i = 0; i < 3; ++i) CallAndThrow(*stub);
}

INSTANTIATE_TEST_SUITE_P(Apis, ThrowingHandlersTest, testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "Callback" : "Blocking";
                         });

}  // namespace
}  // namespace e2e
