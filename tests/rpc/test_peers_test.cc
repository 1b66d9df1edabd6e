// What rpc/test has for tests of programs: contexts that were never of a call,
// reactors without one, and streams that are mocks.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "rpc/test/channel_test_peer.h"
#include "rpc/test/client_context_test_peer.h"
#include "rpc/test/default_reactor_test_peer.h"
#include "rpc/test/mock_stream.h"
#include "rpc/test/server_context_test_spouse.h"
#include "tests/rpc/echo.pb.h"
#include "tests/rpc/echo.rpc.pb.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

using ::testing::_;
using ::testing::DoAll;
using ::testing::Return;
using ::testing::SetArgPointee;

TEST(ServerContextTestSpouseTest, AHandlerSeesTheMetadataOfTheTest) {
  ServerContext context;
  ServerContextTestSpouse spouse(&context);
  spouse.AddClientMetadata("user", "ada");
  spouse.AddClientMetadata("user", "eve");
  spouse.AddClientMetadata("key-bin", std::string("\0\xff", 2));
  EXPECT_EQ(context.client_metadata().count("user"), 2u);
  EXPECT_EQ(context.client_metadata().find("key-bin")->second,
            std::string("\0\xff", 2));
}

TEST(ServerContextTestSpouseTest, TheTestSeesTheMetadataOfAHandler) {
  ServerContext context;
  const ServerContextTestSpouse spouse(&context);
  EXPECT_TRUE(spouse.GetInitialMetadata().empty());
  context.AddInitialMetadata("shard", "7");
  context.AddTrailingMetadata("cost", "3");
  EXPECT_EQ(spouse.GetInitialMetadata(),
            (std::multimap<std::string, std::string>{{"shard", "7"}}));
  EXPECT_EQ(spouse.GetTrailingMetadata(),
            (std::multimap<std::string, std::string>{{"cost", "3"}}));
}

TEST(ClientContextTestPeerTest, BothDirections) {
  ClientContext context;
  ClientContextTestPeer peer(&context);
  EXPECT_TRUE(peer.GetSendInitialMetadata().empty());
  context.AddMetadata("user", "ada");
  EXPECT_EQ(peer.GetSendInitialMetadata(),
            (std::multimap<std::string, std::string>{{"user", "ada"}}));
  peer.AddServerInitialMetadata("shard", "7");
  EXPECT_EQ(context.GetServerInitialMetadata().find("shard")->second, "7");
}

TEST(DefaultReactorTestPeerTest, TellsWhatAHandlerFinishedWith) {
  CallbackServerContext context;
  DefaultReactorTestPeer peer(&context);
  EXPECT_FALSE(peer.test_status_set());
  EXPECT_EQ(context.DefaultReactor(), peer.reactor());
  context.DefaultReactor()->Finish(Status(StatusCode::ABORTED, "busy"));
  ASSERT_TRUE(peer.test_status_set());
  EXPECT_EQ(peer.test_status().error_code(), StatusCode::ABORTED);
}

TEST(DefaultReactorTestPeerTest, CallsAFunctionWithTheStatus) {
  CallbackServerContext context;
  Status seen(StatusCode::UNKNOWN, "");
  const DefaultReactorTestPeer peer(&context,
                                    [&](Status status) { seen = status; });
  context.DefaultReactor()->StartSendInitialMetadata();
  context.DefaultReactor()->Finish(Status::OK);
  EXPECT_TRUE(seen.ok());
}

TEST(MockStreamTest, MocksStandForStreams) {
  SayResponse answer;
  answer.set_text("mock");
  MockClientReaderWriter<SayRequest, SayResponse> stream;
  EXPECT_CALL(stream, Write(_, _)).WillOnce(Return(true));
  EXPECT_CALL(stream, Read(_))
      .WillOnce(DoAll(SetArgPointee<0>(answer), Return(true)));
  EXPECT_CALL(stream, Finish()).WillOnce(Return(Status::OK));
  ClientReaderWriterInterface<SayRequest, SayResponse>& used = stream;
  EXPECT_TRUE(used.Write(SayRequest()));
  SayResponse got;
  EXPECT_TRUE(used.Read(&got));
  EXPECT_EQ(got.text(), "mock");
  EXPECT_TRUE(used.Finish().ok());
}

// All that there are can be made.
TEST(MockStreamTest, OfEveryKind) {
  MockClientReader<SayResponse>();
  MockClientWriter<SayRequest>();
  MockClientAsyncResponseReader<SayResponse>();
  MockClientAsyncReader<SayResponse>();
  MockClientAsyncWriter<SayRequest>();
  MockClientAsyncReaderWriter<SayRequest, SayResponse>();
  MockServerReader<SayRequest>();
  MockServerWriter<SayResponse>();
  MockServerReaderWriter<SayResponse, SayRequest>();
}

// An asynchronous handler's stream that a test made itself.
class AsyncWriterOfATest : public ServerAsyncWriterInterface<SayResponse> {
 public:
  MOCK_METHOD(void, SendInitialMetadata, (void*), (override));
  MOCK_METHOD(void, Write, (const SayResponse&, void*), (override));
  MOCK_METHOD(void, Write, (const SayResponse&, WriteOptions, void*),
              (override));
  MOCK_METHOD(void, Finish, (const Status&, void*), (override));
  MOCK_METHOD(void, WriteAndFinish,
              (const SayResponse&, WriteOptions, const Status&, void*),
              (override));
};

TEST(ServerAsyncInterfacesTest, AHandlerCanBeTestedWithoutACall) {
  AsyncWriterOfATest stream;
  EXPECT_CALL(stream, SendInitialMetadata(&stream));
  EXPECT_CALL(stream, Write(_, _, &stream));
  EXPECT_CALL(stream, Finish(_, &stream));
  ServerAsyncWriterInterface<SayResponse>& used = stream;
  used.SendInitialMetadata(&stream);
  used.WriteLast(SayResponse(), WriteOptions(), &stream);
  used.Finish(Status::OK, &stream);
}

TEST(ServerAsyncInterfacesTest, WhatServesCallsHasThem) {
  ServerContext context;
  ServerAsyncReader<SayResponse, SayRequest> reader(&context);
  ServerAsyncWriter<SayResponse> writer(&context);
  ServerAsyncReaderWriter<SayResponse, SayRequest> both(&context);
  const ServerAsyncReaderInterface<SayResponse, SayRequest>& as_reader = reader;
  const ServerAsyncWriterInterface<SayResponse>& as_writer = writer;
  const ServerAsyncReaderWriterInterface<SayResponse, SayRequest>& as_both =
      both;
  for (const internal::ServerAsyncStreamingInterface* stream :
       {static_cast<const internal::ServerAsyncStreamingInterface*>(&as_reader),
        static_cast<const internal::ServerAsyncStreamingInterface*>(&as_writer),
        static_cast<const internal::ServerAsyncStreamingInterface*>(
            &as_both)}) {
    EXPECT_NE(stream, nullptr);
  }
}

TEST(ChannelTestPeerTest, CountsWhatStubsRegister) {
  const LoopbackNetwork network;
  const auto channel =
      CreateChannel(network.address(), InsecureChannelCredentials());
  const ChannelTestPeer peer(channel.get());
  EXPECT_EQ(peer.registered_calls(), 0);
  const auto one = Echo::NewStub(channel);
  const int methods = peer.registered_calls();
  EXPECT_GT(methods, 0);
  EXPECT_EQ(peer.registration_attempts(), methods);
  const auto another = Echo::NewStub(channel);
  EXPECT_EQ(peer.registered_calls(), methods);
  EXPECT_EQ(peer.registration_attempts(), 2 * methods);
}

}  // namespace
}  // namespace rpc::testing
