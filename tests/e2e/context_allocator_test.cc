// Goal: with a ContextAllocator each call of the callback API, of every kind,
// has the user's context, which is given back once, when the call is over.
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/streams.rpc.pb.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

struct Counts {
  std::atomic<int> made{0};
  std::atomic<int> released{0};
  std::atomic<int> generic_made{0};
  std::atomic<int> generic_released{0};
  std::atomic<bool> none{false};  // the server's own are used
  std::atomic<int> others_released{0};
};

class OwnContext final : public rpc::CallbackServerContext {
 public:
  std::string note = "own";
};

class Allocator final : public rpc::ContextAllocator {
 public:
  explicit Allocator(Counts* counts) : counts_(*counts) {}

  rpc::CallbackServerContext* NewCallbackServerContext() override {
    if (counts_.none) return nullptr;
    ++counts_.made;
    return new OwnContext;
  }
  rpc::GenericCallbackServerContext* NewGenericCallbackServerContext()
      override {
    if (counts_.none) return nullptr;
    ++counts_.generic_made;
    return new rpc::GenericCallbackServerContext;
  }
  void Release(rpc::CallbackServerContext* context) override {
    EXPECT_EQ(context->context_allocator(), this);
    if (counts_.none) {
      ++counts_.others_released;
      return;
    }
    delete static_cast<OwnContext*>(context);
    ++counts_.released;
  }
  void Release(rpc::GenericCallbackServerContext* context) override {
    EXPECT_EQ(context->context_allocator(), this);
    if (counts_.none) {
      ++counts_.others_released;
      return;
    }
    delete context;
    ++counts_.generic_released;
  }

 private:
  Counts& counts_;
};

using ProbeBase = Probe::WithCallbackMethod_Sleep<Probe::Service>;
class Sleeper final : public ProbeBase {
 public:
  std::atomic<bool> expect_own{true};

 private:
  rpc::ServerUnaryReactor* Sleep(rpc::CallbackServerContext* context,
                                 const Nap* request,
                                 Nothing* response) override {
    if (expect_own) {
      EXPECT_EQ(static_cast<OwnContext*>(context)->note, "own");
    }
    EXPECT_EQ(context->client_metadata().count("user"), 1u);
    EXPECT_FALSE(context->peer().empty());
    context->AddTrailingMetadata("seen", "1");
    rpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(rpc::Status::OK);
    return reactor;
  }
};

class Refuser final : public rpc::CallbackGenericService {
  class Reactor final : public rpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const std::string& method) {
      Finish(rpc::Status(rpc::StatusCode::ABORTED, method));
    }
    void OnDone() override { delete this; }
  };
  rpc::ServerGenericBidiReactor* CreateReactor(
      rpc::GenericCallbackServerContext* context) override {
    return new Reactor(context->method());
  }
};

class ContextAllocatorTest : public testing::Test {
 protected:
  ContextAllocatorTest() : streams_(ServeCallbackStreams(&progress_)) {
    rpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(ServerUri(), rpc::InsecureServerCredentials(),
                             &port);
    builder.AddChannelArgument("verbena.device",
                               TheDeviceUnderTest().server_device);
    builder.RegisterService(&sleeper_);
    builder.RegisterService(&streams_->service());
    builder.RegisterCallbackGenericService(&refuser_);
    builder.SetContextAllocator(std::make_unique<Allocator>(&counts_));
    server_ = builder.BuildAndStart();
    client_ = std::make_unique<Client>(ServerUri(port));
    streams_stub_ = Streams::NewStub(client_->shared_channel());
  }

  rpc::Status Sleep() {
    TimedContext context;
    context.AddMetadata("user", "ada");
    Nothing response;
    const rpc::Status status =
        client_->stub().Sleep(&context, Nap(), &response);
    if (status.ok()) {
      EXPECT_EQ(context.GetServerTrailingMetadata().count("seen"), 1u);
    }
    return status;
  }
  // Served by the generic service.
  rpc::Status CallUnknown() {
    const rpc::internal::RpcMethod method("/e2e.Other/Unknown",
                                          rpc::internal::RpcMethod::NORMAL_RPC,
                                          client_->shared_channel());
    TimedContext context;
    Nothing response;
    return rpc::internal::BlockingUnaryCall<Blob, Nothing>(
        &client_->channel(), method, &context, Blob(), &response);
  }
  bool AllReleased(int made, int generic_made) {
    EXPECT_EQ(counts_.made, made);
    EXPECT_EQ(counts_.generic_made, generic_made);
    return Eventually([&] {
      return counts_.released == made &&
             counts_.generic_released == generic_made;
    });
  }

  Counts counts_;
  StreamsProgress progress_;
  const std::unique_ptr<ServedStreams> streams_;
  Sleeper sleeper_;
  Refuser refuser_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Streams::Stub> streams_stub_;
};

TEST_F(ContextAllocatorTest, OfUnaryCalls) {
  for (int i = 0; i < 10; ++i) EXPECT_OK(Sleep());
  EXPECT_TRUE(AllReleased(10, 0));
}

TEST_F(ContextAllocatorTest, OfAllKindsOfStreams) {
  Item item;
  Total total;
  TimedContext down_context;
  const auto down = streams_stub_->Count(&down_context, Order());
  EXPECT_FALSE(down->Read(&item));
  EXPECT_OK(down->Finish());

  TimedContext up_context;
  const auto up = streams_stub_->Sum(&up_context, &total);
  EXPECT_TRUE(up->Write(item));
  EXPECT_TRUE(up->WritesDone());
  EXPECT_OK(up->Finish());

  TimedContext both_context;
  const auto both = streams_stub_->Chat(&both_context);
  EXPECT_TRUE(both->Write(item));
  EXPECT_TRUE(both->Read(&item));
  EXPECT_TRUE(both->WritesDone());
  EXPECT_FALSE(both->Read(&item));
  EXPECT_OK(both->Finish());
  EXPECT_TRUE(AllReleased(3, 0));
}

TEST_F(ContextAllocatorTest, OfStreamsThatAreCancelled) {
  TimedContext context;
  const auto stream = streams_stub_->Chat(&context);
  Item item;
  EXPECT_TRUE(stream->Write(item));
  EXPECT_TRUE(stream->Read(&item));
  context.TryCancel();
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(AllReleased(1, 0));
}

TEST_F(ContextAllocatorTest, OfGenericServices) {
  EXPECT_TRUE(HasCode(CallUnknown(), rpc::StatusCode::ABORTED));
  EXPECT_TRUE(AllReleased(0, 1));
}

TEST_F(ContextAllocatorTest, OneThatHasNoneHearsOfTheServersOwn) {
  sleeper_.expect_own = false;
  counts_.none = true;
  EXPECT_OK(Sleep());
  EXPECT_TRUE(HasCode(CallUnknown(), rpc::StatusCode::ABORTED));
  EXPECT_TRUE(Eventually([&] { return counts_.others_released == 2; }));
  EXPECT_EQ(counts_.others_released, 2);

  counts_.none = false;
  sleeper_.expect_own = true;
  EXPECT_OK(Sleep());
  EXPECT_TRUE(AllReleased(1, 0));
}

}  // namespace
}  // namespace e2e
