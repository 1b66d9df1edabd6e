// What rpc/test has for tests of programs: contexts that were never of a call,
// reactors without one, and streams that are mocks.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "rpc/test/client_context_test_peer.h"
#include "rpc/test/default_reactor_test_peer.h"
#include "rpc/test/mock_stream.h"
#include "rpc/test/server_context_test_spouse.h"
#include "tests/rpc/echo.pb.h"

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

}  // namespace
}  // namespace rpc::testing
