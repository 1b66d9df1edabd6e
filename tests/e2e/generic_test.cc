// Goal: generic stubs and services carry calls of all kinds by name and bytes.
// Method: the service of streams.proto behind a generic proxy: a generic
// service that passes each call on by a generic stub, message by message; the
// same for single methods of a service (WithGenericMethod_X); and generic
// clients of methods that are not streams.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/streams.rpc.pb.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

// One call on its way through the proxy: a stream on either side, each message
// passed on as it comes. It goes when both sides are done.
class Passage final {
 public:
  Passage(rpc::GenericCallbackServerContext* context, rpc::GenericStub* stub)
      : front_(this), back_(this) {
    out_context_.set_deadline(context->deadline());
    stub->PrepareBidiStreamingCall(&out_context_, context->method(),
                                   rpc::StubOptions(), &back_);
    front_.StartRead(&request_);
    back_.StartRead(&response_);
    // Until the server behind has no more to say: what comes from the front is
    // written from the front's reactions.
    back_.AddHold();
    back_.StartCall();
  }

  rpc::ServerGenericBidiReactor* front() { return &front_; }

 private:
  struct Front final : rpc::ServerGenericBidiReactor {
    explicit Front(Passage* passage) : passage(*passage) {}
    void OnReadDone(bool ok) override {
      absl::MutexLock lock(&passage.mutex_);
      if (!passage.back_is_open_) return;
      if (ok) {
        passage.back_.StartWrite(&passage.request_);
      } else {
        passage.back_.StartWritesDone();
      }
    }
    void OnWriteDone(bool ok) override {
      if (!ok) return passage.CloseBack();
      absl::MutexLock lock(&passage.mutex_);
      if (passage.back_is_open_) passage.back_.StartRead(&passage.response_);
    }
    void OnCancel() override { passage.out_context_.TryCancel(); }
    void OnDone() override { passage.OneIsDone(); }
    Passage& passage;
  };
  struct Back final : rpc::ClientBidiReactor<rpc::ByteBuffer, rpc::ByteBuffer> {
    explicit Back(Passage* passage) : passage(*passage) {}
    void OnReadDone(bool ok) override {
      if (!ok) return passage.CloseBack();
      passage.front_.StartWrite(&passage.response_);
    }
    void OnWriteDone(bool ok) override {
      if (ok) passage.front_.StartRead(&passage.request_);
    }
    void OnDone(const rpc::Status& status) override {
      passage.front_.Finish(status);
      passage.OneIsDone();
    }
    Passage& passage;
  };

  // Nothing more comes from there, or is wanted.
  void CloseBack() {
    {
      absl::MutexLock lock(&mutex_);
      if (!std::exchange(back_is_open_, false)) return;
    }
    back_.RemoveHold();
  }
  void OneIsDone() {
    if (left_.fetch_sub(1) == 1) delete this;
  }

  Front front_;
  Back back_;
  rpc::ClientContext out_context_;
  rpc::ByteBuffer request_;
  rpc::ByteBuffer response_;
  absl::Mutex mutex_;
  bool back_is_open_ ABSL_GUARDED_BY(mutex_) = true;
  std::atomic<int> left_{2};
};

class Proxy final : public rpc::CallbackGenericService {
 public:
  explicit Proxy(std::shared_ptr<rpc::Channel> channel)
      : stub_(std::move(channel)) {}

 private:
  rpc::ServerGenericBidiReactor* CreateReactor(
      rpc::GenericCallbackServerContext* context) override {
    return (new Passage(context, &stub_))->front();
  }

  rpc::GenericStub stub_;
};

// Leaves one method to its server's generic service.
class MostOfStreams final
    : public Streams::WithGenericMethod_Chat<Streams::Service> {
 public:
  static constexpr int64_t kNumber = -7;

  rpc::Status Count(rpc::ServerContext*, const Order*,
                    rpc::ServerWriter<Item>* writer) override {
    Item item;
    item.set_number(kNumber);
    EXPECT_TRUE(writer->Write(item));
    return rpc::Status::OK;
  }
};

// Leaves another one, of another kind.
class MostOfProbe final : public Probe::WithGenericMethod_Echo<Probe::Service> {
 public:
  rpc::Status Observe(rpc::ServerContext*, const Nothing*,
                      Observation* response) override {
    response->set_peer("somebody");
    return rpc::Status::OK;
  }
};

class GenericTest : public testing::Test {
 protected:
  GenericTest() {
    EXPECT_TRUE(server_.ok()) << server_.status();
    channel_ = Client(server_.address()).shared_channel();
  }

  // A server with the generic service, and no other ones but `beside` it.
  std::shared_ptr<rpc::Channel> StartProxy(
      const std::vector<rpc::Service*>& beside = {}) {
    proxy_.emplace(channel_);
    rpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(ServerUri(), rpc::InsecureServerCredentials(),
                             &port);
    builder.AddChannelArgument("verbena.device",
                               TheDeviceUnderTest().server_device);
    builder.RegisterCallbackGenericService(&*proxy_);
    for (rpc::Service* const service : beside) builder.RegisterService(service);
    proxy_server_ = builder.BuildAndStart();
    EXPECT_NE(proxy_server_, nullptr);
    return Client(ServerUri(port)).shared_channel();
  }

  StreamsProgress progress_;
  const std::unique_ptr<ServedStreams> streams_ =
      ServeStreams(Api::kBlocking, &progress_);
  Server server_{{}, ServerUri(), &streams_->service()};
  std::shared_ptr<rpc::Channel> channel_;
  std::optional<Proxy> proxy_;
  MostOfStreams most_of_streams_;
  MostOfProbe most_of_probe_;
  std::unique_ptr<rpc::Server> proxy_server_;
};

TEST_F(GenericTest, AProxyPassesStreamsOn) {
  const auto stub = Streams::NewStub(StartProxy());
  TimedContext context;
  const auto stream = stub->Chat(&context);
  Item item;
  Item answer;
  for (int64_t i = 0; i < 200; ++i) {
    item.set_number(i);
    item.set_data(std::string(static_cast<size_t>(i) * 100, 'x'));
    ASSERT_TRUE(stream->Write(item));
    ASSERT_TRUE(stream->Read(&answer));
    ASSERT_EQ(answer.number(), i);
    ASSERT_EQ(answer.data(), item.data());
  }
  item.set_code(rpc::StatusCode::ABORTED);
  EXPECT_TRUE(stream->Write(item));
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::ABORTED));
}

TEST_F(GenericTest, AProxyPassesMethodsOnThatAreNoStreams) {
  // The probe's methods are unary, Count's server streams.
  const std::shared_ptr<rpc::Channel> channel = StartProxy();
  const auto probe = Probe::NewStub(channel);
  for (const size_t bytes : {0, 100, 100'000, 1'000'000}) {
    TimedContext context;
    Blob request;
    request.set_data(std::string(bytes, 'a'));
    Blob response;
    EXPECT_OK(probe->Echo(&context, request, &response));
    EXPECT_EQ(response.data(), request.data());
  }
  TimedContext context;
  Order order;
  order.set_count(50);
  const auto reader = Streams::NewStub(channel)->Count(&context, order);
  Item item;
  int count = 0;
  while (reader->Read(&item)) ++count;
  EXPECT_EQ(count, 50);
  EXPECT_OK(reader->Finish());
}

// ---- Generic methods beside others.

TEST_F(GenericTest, AMethodThatIsGenericGoesToTheGenericService) {
  const std::shared_ptr<rpc::Channel> channel =
      StartProxy({&most_of_streams_, &most_of_probe_});
  TimedContext chat_context;
  const auto chat = Streams::NewStub(channel)->Chat(&chat_context);
  Item item;
  for (int64_t i = 0; i < 20; ++i) {
    item.set_number(i);
    ASSERT_TRUE(chat->Write(item));
    ASSERT_TRUE(chat->Read(&item));
    EXPECT_EQ(item.number(), i);
  }
  EXPECT_TRUE(chat->WritesDone());
  EXPECT_FALSE(chat->Read(&item));
  EXPECT_OK(chat->Finish());

  TimedContext echo_context;
  Blob request;
  request.set_data("some");
  Blob response;
  EXPECT_OK(Probe::NewStub(channel)->Echo(&echo_context, request, &response));
  EXPECT_EQ(response.data(), "some");
}

// A call that the proxy passed on would have been answered otherwise.
TEST_F(GenericTest, TheOtherMethodsOfItsServiceStayThere) {
  const std::shared_ptr<rpc::Channel> channel =
      StartProxy({&most_of_streams_, &most_of_probe_});
  const auto stub = Streams::NewStub(channel);
  TimedContext count_context;
  const auto count = stub->Count(&count_context, Order());
  Item item;
  EXPECT_TRUE(count->Read(&item));
  EXPECT_EQ(item.number(), MostOfStreams::kNumber);
  EXPECT_FALSE(count->Read(&item));
  EXPECT_OK(count->Finish());

  TimedContext observe_context;
  Observation observation;
  EXPECT_OK(Probe::NewStub(channel)->Observe(&observe_context, Nothing(),
                                             &observation));
  EXPECT_EQ(observation.peer(), "somebody");

  // Nobody implements it here, but the server behind does.
  TimedContext sum_context;
  Total total;
  const auto sum = stub->Sum(&sum_context, &total);
  EXPECT_TRUE(HasCode(sum->Finish(), rpc::StatusCode::UNIMPLEMENTED));
}

// ---- Generic clients.

TEST_F(GenericTest, AGenericStubCallsUnaryMethods) {
  rpc::TemplatedGenericStub<Blob, Blob> stub(channel_);
  Blob request;
  request.set_data("some");
  const std::string method = "/e2e.Probe/Echo";
  {
    TimedContext context;
    Blob response;
    absl::Notification done;
    stub.UnaryCall(&context, method, {}, &request, &response,
                   [&](const rpc::Status& status) {
                     EXPECT_OK(status);
                     done.Notify();
                   });
    done.WaitForNotification();
    EXPECT_EQ(response.data(), "some");
  }
  TimedContext context;
  Blob response;
  rpc::Status status;
  rpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_OK(status);
  EXPECT_EQ(response.data(), "some");
}

TEST_F(GenericTest, AnUnknownMethodIsUnimplemented) {
  rpc::GenericStub stub(channel_);
  TimedContext context;
  rpc::CompletionQueue queue;
  rpc::ByteBuffer response;
  rpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/e2e.Probe/Nothing",
                                          rpc::ByteBuffer(nullptr, 0), &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNIMPLEMENTED));
}

// The server has what it waits for with the first message.
TEST_F(GenericTest, AUnaryMethodDoesNotWaitForWritesDone) {
  rpc::TemplatedGenericStub<Blob, Blob> stub(channel_);
  rpc::CompletionQueue queue;
  TimedContext context;
  const auto stream = stub.PrepareCall(&context, "/e2e.Probe/Echo", &queue);
  const auto comes = [&](bool expected) {
    void* tag = nullptr;
    bool ok = !expected;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(ok, expected);
  };
  stream->StartCall(nullptr);
  comes(true);
  Blob request;
  request.set_data("some");
  stream->Write(request, nullptr);
  comes(true);
  Blob response;
  stream->Read(&response, nullptr);
  comes(true);
  EXPECT_EQ(response.data(), "some");
  rpc::Status status;
  stream->Finish(&status, nullptr);
  comes(true);
  EXPECT_OK(status);
}

// Nor does a large one come otherwise, where it is not what opens the call.
TEST_F(GenericTest, AUnaryMethodTakesALargeMessageOfAStream) {
  rpc::TemplatedGenericStub<Blob, Blob> stub(channel_);
  rpc::CompletionQueue queue;
  TimedContext context;
  const auto stream = stub.PrepareCall(&context, "/e2e.Probe/Echo", &queue);
  const auto comes = [&] {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
  };
  stream->StartCall(nullptr);
  comes();
  Blob request;
  request.set_data(std::string(8 << 20, 'x'));
  stream->WriteLast(request, rpc::WriteOptions(), nullptr);
  comes();
  Blob response;
  stream->Read(&response, nullptr);
  comes();
  EXPECT_EQ(response.data().size(), request.data().size());
  rpc::Status status;
  stream->Finish(&status, nullptr);
  comes();
  EXPECT_OK(status);
}

TEST_F(GenericTest, AServerIsReachedFromItsOwnProcess) {
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", TheDeviceUnderTest().client_device);
  TimedContext context;
  Blob request;
  request.set_data("some");
  Blob response;
  EXPECT_OK(Probe::NewStub(server_.server().InProcessChannel(arguments))
                ->Echo(&context, request, &response));
  EXPECT_EQ(response.data(), "some");
}

TEST_F(GenericTest, ASecondGenericServiceIsLeftOut) {
  Proxy proxy(channel_);
  rpc::CallbackGenericService another;  // knows no method
  rpc::ServerBuilder builder;
  builder.AddListeningPort(ServerUri(), rpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&proxy);
  builder.RegisterCallbackGenericService(&another);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", TheDeviceUnderTest().client_device);
  TimedContext context;
  Blob response;
  EXPECT_OK(Probe::NewStub(server->InProcessChannel(arguments))
                ->Echo(&context, Blob(), &response));
}

TEST_F(GenericTest, AServerNeedsNoPortForItsOwnProcess) {
  Proxy proxy(channel_);
  rpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&proxy);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  TimedContext context;
  Blob request;
  request.set_data("some");
  Blob response;
  EXPECT_OK(Probe::NewStub(server->InProcessChannel(rpc::ChannelArguments()))
                ->Echo(&context, request, &response));
  EXPECT_EQ(response.data(), "some");
}

}  // namespace
}  // namespace e2e
