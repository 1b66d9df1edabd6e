// Goal: a client's stream ends in order whatever its user does between the
// steps of its beginning. Method: those steps, by hand, over a loopback
// transport.
#include "rpc/internal/client_stream.h"

#include <memory>

#include "gtest/gtest.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/rpc.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::internal {
namespace {

TEST(ClientStreamTest, AbandonedBeforeItIsStartedItNeverBegins) {
  testing::LoopbackNetwork network;
  const auto channel =
      CreateChannel(network.address(), InsecureChannelCredentials());
  const RpcMethod method("/test.Test/Method", RpcMethod::BIDI_STREAMING,
                         channel);
  auto context = std::make_unique<ClientContext>();
  const std::shared_ptr<ClientStream> stream = ClientStream::Create(
      channel.get(), method, context.get(), ClientStream::Completions::kQuick);
  stream->Prepare(ConstMessageRef());
  stream->Abandon();
  context.reset();
  BlockingOperation started;
  stream->StartPrepared(&started);
  EXPECT_TRUE(started.done().is_set());
  EXPECT_FALSE(started.ok());
  EXPECT_FALSE(stream->MayRun());
  EXPECT_EQ(stream->TakeStatus(MessageRef()).error_code(),
            StatusCode::CANCELLED);
}

}  // namespace
}  // namespace rpc::internal
