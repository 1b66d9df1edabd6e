// Goal: interceptors of a channel see every operation of its calls, in order,
// and what they change counts, for each kind of call and each of the client's
// APIs. Method: calls of all kinds by all APIs, with interceptors that note
// what they see, or that change one thing each.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/calls_by_api.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interceptors.h"
#include "tests/e2e/parcels.h"

namespace e2e {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// The server, whose handlers give client metadata that begin with "x-" back as
// trailing metadata.
class InterceptorsTest : public testing::Test {
 protected:
  InterceptorsTest()
      : service_(&GiveBack), server_({}, ServerUri(), &service_) {
    EXPECT_TRUE(server_.ok()) << server_.status();
  }

  static void GiveBack(rpc::ServerContext* context) {
    for (const auto& [key, value] : context->client_metadata()) {
      if (key.substr(0, 2) != "x-") continue;
      context->AddTrailingMetadata(std::string(key), std::string(value));
    }
  }
  std::shared_ptr<rpc::Channel> ChannelWith(const std::vector<Act>& acts) {
    return InterceptedChannel(server_.address(), acts);
  }
  static std::string TrailingOf(const rpc::ClientContext& context,
                                const std::string& key) {
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto found = metadata.find(key);
    return found == metadata.end() ? "none" : std::string(found->second);
  }

  ParcelService service_;
  Server server_;
};

class EachCallTest
    : public InterceptorsTest,
      public testing::WithParamInterface<std::tuple<ClientApi, RpcType>> {
 protected:
  ClientApi api() const { return std::get<0>(GetParam()); }
  RpcType type() const { return std::get<1>(GetParam()); }
  // As a generic stub makes it.
  RpcType type_of_call() const {
    const bool is_stream = type() != RpcType::NORMAL_RPC;
    return api() == ClientApi::kGeneric && is_stream ? RpcType::BIDI_STREAMING
                                                     : type();
  }
  Exchanged<Parcel> CallOn(const std::shared_ptr<rpc::Channel>& channel) {
    return Call(api(), type(), channel, &context_);
  }
  void ExpectWentWell(const Exchanged<Parcel>& result) {
    EXPECT_OK(result.status);
    EXPECT_EQ(result.responses.size(), ServerStreams(type()) ? 2 : 1);
  }
  std::vector<std::string> ExpectedSent() const;
  std::vector<std::string> ExpectedReceived() const;

  TimedContext context_;
};

std::vector<std::string> EachCallTest::ExpectedSent() const {
  std::vector<std::string> names = {"pre_send_initial_metadata"};
  if (!ClientStreams(type_of_call())) {
    names.insert(names.end(),
                 {"pre_send_message", "pre_send_close", "post_send_message"});
    return names;
  }
  if (!ClientStreams(type())) {  // WriteLast
    names.insert(names.end(),
                 {"pre_send_message", "pre_send_close", "post_send_message"});
    return names;
  }
  for (int i = 0; i < 2; ++i) {
    names.insert(names.end(), {"pre_send_message", "post_send_message"});
  }
  names.push_back("pre_send_close");
  return names;
}

std::vector<std::string> EachCallTest::ExpectedReceived() const {
  std::vector<std::string> names = {"post_recv_initial_metadata"};
  const bool streams = ServerStreams(type_of_call());
  // Streams are read until there is nothing more.
  const int messages = ServerStreams(type()) ? 2 : 1;
  for (int i = 0; i < messages + (streams ? 1 : 0); ++i) {
    names.push_back("post_recv_message");
  }
  names.push_back("post_recv_status");
  return names;
}

TEST_P(EachCallTest, ShowsItsHookPointsInOrder) {
  HookLog log;
  const auto channel = ChannelWith({Noting(&log)});
  ExpectWentWell(CallOn(channel));
  EXPECT_THAT(log.Sent(), ElementsAreArray(ExpectedSent()));
  EXPECT_THAT(log.Received(), ElementsAreArray(ExpectedReceived()));
}

TEST_P(EachCallTest, GoesOnWhenInterceptorsProceedOnAnotherThread) {
  HookLog first;
  HookLog second;
  {
    OtherThread thread;
    const auto channel = ChannelWith(
        {thread.Doing(Noting(&first)), thread.Doing(Noting(&second))});
    ExpectWentWell(CallOn(channel));
  }
  EXPECT_THAT(first.Sent(), ElementsAreArray(ExpectedSent()));
  EXPECT_THAT(first.Received(), ElementsAreArray(ExpectedReceived()));
  EXPECT_THAT(second.Sent(), ElementsAreArray(ExpectedSent()));
  EXPECT_THAT(second.Received(), ElementsAreArray(ExpectedReceived()));
}

TEST_P(EachCallTest, AsksFromFirstToLastAndBack) {
  absl::Mutex mutex;
  std::string sent;
  std::string received;
  const auto named = [&](char name) -> Act {
    return [&, name](Batch* batch) {
      {
        absl::MutexLock lock(&mutex);
        if (batch->QueryInterceptionHookPoint(
                Hook::PRE_SEND_INITIAL_METADATA)) {
          sent += name;
        }
        if (batch->QueryInterceptionHookPoint(Hook::POST_RECV_STATUS)) {
          received += name;
        }
      }
      batch->Proceed();
    };
  };
  const auto channel =
      ChannelWith({named('a'), nullptr, named('b'), named('c')});
  ExpectWentWell(CallOn(channel));
  EXPECT_EQ(sent, "abc");
  EXPECT_EQ(received, "cba");
}

TEST_P(EachCallTest, SendsMetadataThatAnInterceptorAdds) {
  const auto channel = ChannelWith({[](Batch* batch) {
    if (auto* const metadata = batch->GetSendInitialMetadata()) {
      metadata->emplace("x-added", "yes");
    }
    batch->Proceed();
  }});
  ExpectWentWell(CallOn(channel));
  EXPECT_EQ(TrailingOf(context_, "x-added"), "yes");
}

// The content of requests and responses is what the interceptor makes of it.
TEST_P(EachCallTest, SendsAndReceivesWhatAnInterceptorPutsInPlace) {
  Parcel replacement = ParcelFor(type() == RpcType::SERVER_STREAMING ? 2 : 1,
                                 /*response_bytes=*/7);
  const auto channel = ChannelWith({[&](Batch* batch) {
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE)) {
      batch->ModifySendMessage(&replacement);
    }
    if (auto* const message = static_cast<Parcel*>(batch->GetRecvMessage())) {
      message->set_code(static_cast<int>(message->content().data().size()));
    }
    batch->Proceed();
  }});
  const Exchanged<Parcel> result = CallOn(channel);
  ExpectWentWell(result);
  for (const Parcel& response : result.responses) {
    EXPECT_EQ(response.code(), 7);
  }
}

TEST_P(EachCallTest, SendsTheBytesThatAnInterceptorChanged) {
  const auto channel = ChannelWith({[&](Batch* batch) {
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE)) {
      rpc::ByteBuffer* const buffer = batch->GetSerializedSendMessage();
      EXPECT_EQ(batch->GetSendMessage(), nullptr);
      rpc::ByteBuffer copy = *buffer;
      Parcel request;
      EXPECT_OK(rpc::SerializationTraits<Parcel>::Deserialize(&copy, &request));
      request.set_response_bytes(9);
      bool own = false;
      EXPECT_OK(
          rpc::SerializationTraits<Parcel>::Serialize(request, buffer, &own));
    }
    batch->Proceed();
  }});
  const Exchanged<Parcel> result = CallOn(channel);
  ExpectWentWell(result);
  for (const Parcel& response : result.responses) {
    EXPECT_EQ(response.content().data().size(), 9);
  }
}

TEST_P(EachCallTest, EndsWithTheStatusThatAnInterceptorSets) {
  const auto channel = ChannelWith({[](Batch* batch) {
    if (rpc::Status* const status = batch->GetRecvStatus()) {
      EXPECT_OK(*status);
      *status = rpc::Status(rpc::StatusCode::DATA_LOSS, "by interceptor");
      batch->GetRecvTrailingMetadata()->emplace("by", "interceptor");
    }
    batch->Proceed();
  }});
  EXPECT_TRUE(HasCode(CallOn(channel).status, rpc::StatusCode::DATA_LOSS));
  EXPECT_EQ(TrailingOf(context_, "by"), "interceptor");
}

TEST_P(EachCallTest, ShowsAStatusThatIsAnError) {
  HookLog log;
  const auto channel = InterceptedChannel("rdma://no address", {Noting(&log)});
  EXPECT_FALSE(CallOn(channel).status.ok());
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_INITIAL_METADATA), 1);
  EXPECT_EQ(log.CountOf(Hook::POST_RECV_INITIAL_METADATA), 1);
  EXPECT_EQ(log.CountOf(Hook::POST_RECV_STATUS), 1);
}

INSTANTIATE_TEST_SUITE_P(All, EachCallTest,
                         testing::Combine(testing::ValuesIn(kAllClientApis),
                                          testing::ValuesIn(kAllTypes)),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  MethodOf(std::get<1>(info.param));
                         });

// ---- What factories know.

class KnowingFactory final
    : public rpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit KnowingFactory(std::vector<std::string>* log) : log_(*log) {}

  rpc::experimental::Interceptor* CreateClientInterceptor(
      rpc::experimental::ClientRpcInfo* info) override {
    const char* const suffix = info->suffix_for_stats();
    log_.push_back(absl::StrCat(info->method(), " ",
                                static_cast<int>(info->type()), " ",
                                suffix == nullptr ? "none" : suffix));
    channel = info->channel();
    context = info->client_context();
    return nullptr;
  }

  rpc::ChannelInterface* channel = nullptr;
  rpc::ClientContext* context = nullptr;

 private:
  std::vector<std::string>& log_;
};

TEST_F(InterceptorsTest, FactoriesKnowTheCall) {
  std::vector<std::string> log;
  auto owned = std::make_unique<KnowingFactory>(&log);
  KnowingFactory& factory = *owned;
  std::vector<
      std::unique_ptr<rpc::experimental::ClientInterceptorFactoryInterface>>
      factories;
  factories.push_back(std::move(owned));
  const auto channel =
      server_.server().experimental().InProcessChannelWithInterceptors(
          rpc::ChannelArguments(), std::move(factories));
  const auto stub =
      Parcels::NewStub(channel, rpc::StubOptions("some statistics"));
  TimedContext unary;
  Parcel response;
  EXPECT_OK(stub->Unary(&unary, ParcelFor(1), &response));
  EXPECT_EQ(factory.channel, channel.get());
  EXPECT_EQ(factory.context, &unary);
  TimedContext chat;
  EXPECT_OK(Call(ClientApi::kBlocking, RpcType::BIDI_STREAMING, channel, &chat)
                .status);
  EXPECT_THAT(log, ElementsAre("/e2e.Parcels/Unary 0 some statistics",
                               "/e2e.Parcels/Chat 3 none"));
}

TEST_F(InterceptorsTest, AFactoryOfTheProcessComesLast) {
  HookLog own;
  HookLog global;
  std::string order;
  ActingFactory factory([&](Batch* batch) {
    if (own.CountOf(Hook::PRE_SEND_INITIAL_METADATA) == 1 &&
        global.All().empty()) {
      order = "own global";
    }
    global.Note(batch);
    batch->Proceed();
  });
  rpc::experimental::RegisterGlobalClientInterceptorFactory(&factory);
  const auto channel = ChannelWith({Noting(&own)});
  const auto plain = ChannelWith({});
  TimedContext context;
  TimedContext another;
  EXPECT_OK(Call(ClientApi::kBlocking, RpcType::NORMAL_RPC, channel, &context)
                .status);
  EXPECT_OK(
      Call(ClientApi::kBlocking, RpcType::NORMAL_RPC, plain, &another).status);
  rpc::experimental::TestOnlyResetGlobalClientInterceptorFactory();
  EXPECT_EQ(order, "own global");
  EXPECT_EQ(own.CountOf(Hook::POST_RECV_STATUS), 1);
  EXPECT_EQ(global.CountOf(Hook::POST_RECV_STATUS), 2);
}

TEST_F(InterceptorsTest, AContextServesOneCallOnly) {
  HookLog log;
  const auto channel = ChannelWith({Noting(&log)});
  TimedContext context;
  EXPECT_OK(Call(ClientApi::kBlocking, RpcType::NORMAL_RPC, channel, &context)
                .status);
  EXPECT_TRUE(HasCode(
      Call(ClientApi::kBlocking, RpcType::NORMAL_RPC, channel, &context).status,
      rpc::StatusCode::FAILED_PRECONDITION));
}

TEST_F(InterceptorsTest, AnAttachmentTravelsAsWithoutThem) {
  const auto channel = ChannelWith({[](Batch* batch) { batch->Proceed(); }});
  const auto stub = Probe::NewStub(channel);
  TimedContext context;
  rpc::BufferChain attachment;
  absl::StatusOr<rpc::Buffer> buffer = channel->AllocateBuffer(100);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  attachment.Append(*std::move(buffer));
  context.set_attachment(std::move(attachment));
  Blob blob;
  EXPECT_OK(stub->Echo(&context, Blob(), &blob));
  EXPECT_EQ(context.attachment().size(), 100);
}

// ---- Cancelling.

TEST_F(InterceptorsTest, HearOfTryCancelBeforeAndDuringTheCall) {
  HookLog log;
  const auto channel = ChannelWith({Noting(&log), Noting(&log)});
  const auto stub = Parcels::NewStub(channel);
  TimedContext early;
  early.TryCancel();
  Parcel response;
  EXPECT_TRUE(HasCode(stub->Unary(&early, Parcel(), &response),
                      rpc::StatusCode::CANCELLED));
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_CANCEL), 2);
  TimedContext context;
  const auto stream = stub->Chat(&context);
  EXPECT_TRUE(stream->Write(ParcelFor(1)));
  EXPECT_TRUE(stream->Read(&response));
  context.TryCancel();
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_CANCEL), 4);
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
}

}  // namespace
}  // namespace e2e
