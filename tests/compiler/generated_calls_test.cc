// Goal: calls by generated stubs arrive at the right functions of generated
// services, whatever the names and the forms, several services in one server.
// Method: client and server over a transport within the process; each method
// answers with what identifies it.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "rpc/rpc.h"
#include "tests/compiler/protos/legacy.rpc.pb.h"
#include "tests/compiler/protos/lite.rpc.pb.h"
#include "tests/compiler/protos/nopackage.rpc.pb.h"
#include "tests/compiler/protos/odd.rpc.pb.h"
#include "tests/rpc/loopback_transport.h"

namespace verbena::testing::odd {
namespace {

// A server with some services, and a channel to it.
class Connected {
 public:
  template <typename... Service>
  explicit Connected(Service*... services) {
    ::rpc::ServerBuilder builder;
    builder.AddListeningPort(network_.address(),
                             ::rpc::InsecureServerCredentials());
    (builder.RegisterService(services), ...);
    server_ = builder.BuildAndStart();
    channel_ = ::rpc::CreateChannel(network_.address(),
                                    ::rpc::InsecureChannelCredentials());
  }
  ~Connected() { server_->Shutdown(); }

  const std::shared_ptr<::rpc::Channel>& channel() const { return channel_; }

 private:
  ::rpc::testing::LoopbackNetwork network_{{.threads = 2}};
  std::unique_ptr<::rpc::Server> server_;
  std::shared_ptr<::rpc::Channel> channel_;
};

// The first and the last method block, the one between is a callback's.
class Mixed final
    : public Ordinary::WithCallbackMethod_Second<Ordinary::Service> {
 public:
  ::rpc::Status First(::rpc::ServerContext*, const Plain*,
                      Plain* response) override {
    response->set_number(1);
    return ::rpc::Status::OK;
  }
  ::rpc::ServerUnaryReactor* Second(::rpc::CallbackServerContext* context,
                                    const Plain*, Plain* response) override {
    response->set_number(2);
    ::rpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(::rpc::Status::OK);
    return reactor;
  }
};

TEST(GeneratedCallsTest, EachFormOfServerFunctionAnswers) {
  Mixed service;
  const Connected connected(&service);
  const auto stub = Ordinary::NewStub(connected.channel());
  Plain response;
  {
    ::rpc::ClientContext context;
    ASSERT_TRUE(stub->First(&context, Plain(), &response).ok());
    EXPECT_EQ(response.number(), 1);
  }
  {
    ::rpc::ClientContext context;
    ASSERT_TRUE(stub->Second(&context, Plain(), &response).ok());
    EXPECT_EQ(response.number(), 2);
  }
  ::rpc::ClientContext context;
  EXPECT_EQ(stub->Third(&context, Plain(), &response).error_code(),
            ::rpc::StatusCode::UNIMPLEMENTED);
}

class SignalingReactor final : public ::rpc::ClientUnaryReactor {
 public:
  void OnDone(const ::rpc::Status& status) override { done_.set_value(status); }
  ::rpc::Status Wait() { return done_.get_future().get(); }

 private:
  std::promise<::rpc::Status> done_;
};

TEST(GeneratedCallsTest, EachFormOfClientFunctionCalls) {
  Mixed service;
  const Connected connected(&service);
  const std::unique_ptr<Ordinary::StubInterface> stub =
      Ordinary::NewStub(connected.channel());
  const Plain request;
  Plain response;
  {
    ::rpc::ClientContext context;
    std::promise<::rpc::Status> done;
    stub->async()->First(
        &context, &request, &response,
        [&](::rpc::Status status) { done.set_value(std::move(status)); });
    ASSERT_TRUE(done.get_future().get().ok());
    EXPECT_EQ(response.number(), 1);
  }
  ::rpc::ClientContext context;
  SignalingReactor reactor;
  stub->async()->Second(&context, &request, &response, &reactor);
  reactor.StartCall();
  ASSERT_TRUE(reactor.Wait().ok());
  EXPECT_EQ(response.number(), 2);
}

// Methods whose functions are named otherwise than they are.
class OddNames final : public Names::Service {
 public:
  ::rpc::Status delete_(::rpc::ServerContext*, const Plain*,
                        Plain* response) override {
    response->set_number(1);
    return ::rpc::Status::OK;
  }
  ::rpc::Status async_(::rpc::ServerContext*, const Plain*,
                       Plain* response) override {
    response->set_number(2);
    return ::rpc::Status::OK;
  }
  ::rpc::Status rpcmethod_0__(::rpc::ServerContext*, const Plain*,
                              Plain* response) override {
    response->set_number(3);
    return ::rpc::Status::OK;
  }
  ::rpc::Status AddMethod(::rpc::ServerContext*, const Plain*,
                          Plain* response) override {
    response->set_number(4);
    return ::rpc::Status::OK;
  }
};

TEST(GeneratedCallsTest, RenamedFunctionsKeepTheirPath) {
  OddNames service;
  const Connected connected(&service);
  const auto stub = Names::NewStub(connected.channel());
  int expected = 0;
  for (const auto function :
       {&Names::Stub::delete_, &Names::Stub::async_,
        &Names::Stub::rpcmethod_0__, &Names::Stub::AddMethod}) {
    ::rpc::ClientContext context;
    Plain response;
    const ::rpc::Status status =
        (stub.get()->*function)(&context, Plain(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.number(), ++expected);
  }
}

class GlobalService final : public ::VerbenaTestingNoPackage::Service {
 public:
  ::rpc::Status Get(::rpc::ServerContext*, const ::VerbenaTestingMessage*,
                    ::VerbenaTestingMessage*) override {
    return ::rpc::Status::OK;
  }
};

class LiteService final : public lite::Lite::Service {
 public:
  ::rpc::Status Get(::rpc::ServerContext*, const lite::Message*,
                    lite::Message*) override {
    return ::rpc::Status::OK;
  }
};

class LegacyService final : public legacy::apart::KeyValue::Service {
 public:
  ::rpc::Status Get(::rpc::ServerContext*, const legacy::Request* request,
                    legacy::Response*) override {
    return request->key() == "k"
               ? ::rpc::Status::OK
               : ::rpc::Status(::rpc::StatusCode::NOT_FOUND, "");
  }
};

TEST(GeneratedCallsTest, SeveralServicesInOneServer) {
  GlobalService global;
  LiteService lite_service;
  LegacyService legacy_service;
  const Connected connected(&global, &lite_service, &legacy_service);
  {
    ::rpc::ClientContext context;
    ::VerbenaTestingMessage message;
    EXPECT_TRUE(::VerbenaTestingNoPackage::NewStub(connected.channel())
                    ->Get(&context, message, &message)
                    .ok());
  }
  {
    ::rpc::ClientContext context;
    lite::Message message;
    EXPECT_TRUE(lite::Lite::NewStub(connected.channel())
                    ->Get(&context, message, &message)
                    .ok());
  }
  ::rpc::ClientContext context;
  legacy::Request request;
  request.set_key("k");
  legacy::Response response;
  EXPECT_TRUE(legacy::apart::KeyValue::NewStub(connected.channel())
                  ->Get(&context, request, &response)
                  .ok());
}

}  // namespace
}  // namespace verbena::testing::odd
