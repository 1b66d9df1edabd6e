// Goal: every size arrives whole, both ways, as a message, as an attachment,
// and as both; what is too large is refused with a status that names both
// numbers, and costs the connection nothing. Method: a server process that
// compares checksums; sizes on both sides of every boundary: inline data,
// receive buffers (where the rendezvous starts), size classes of registered
// memory, arenas, READ chunks.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/blocking_counter.h"
#include "benchmarks/test_pattern.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"

namespace e2e {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
const size_t kLargest = size_t{8} << 20;
#else
const size_t kLargest = TheDeviceUnderTest().largest_bytes;
#endif

// Each power of two and what is around it: protobuf's and the frame's own bytes
// shift a boundary by up to some dozens.
std::vector<size_t> SizesAroundBoundaries() {
  std::vector<size_t> sizes = {0, 1, 2, 3, 7};
  for (size_t power = 16; power <= kLargest; power *= 2) {
    for (const size_t below : {64, 33, 17, 9, 4, 1, 0}) {
      if (below < power) sizes.push_back(power - below);
    }
    if (power < kLargest) sizes.push_back(power + 1);
    if (power >= (size_t{4} << 20)) sizes.push_back(power - power / 3);
  }
  return sizes;
}

// Every size where the default's receive buffer ends.
std::vector<size_t> SizesAroundTheEagerLimit() {
  std::vector<size_t> sizes;
  for (size_t bytes = 10'100; bytes <= 10'260; ++bytes) sizes.push_back(bytes);
  return sizes;
}

// Every size where messages are written to registered memory at once, and where
// inline data ends, on the software device.
std::vector<size_t> SizesAroundTheSmallLimits() {
  std::vector<size_t> sizes;
  for (size_t bytes = 1'040; bytes <= 1'160; ++bytes) sizes.push_back(bytes);
  return sizes;
}

class SizesTest : public testing::Test {
 protected:
  SizesTest() : server_(PeerProcess::Serve()), client_(server_.address()) {}

  PeerProcess server_;
  Client client_;
};

TEST_F(SizesTest, MessagesThere) {
  for (const size_t bytes : SizesAroundBoundaries()) {
    ASSERT_OK(client_.Consume(bytes)) << bytes;
  }
}

TEST_F(SizesTest, MessagesBack) {
  for (const size_t bytes : SizesAroundBoundaries()) {
    ASSERT_OK(client_.Produce(bytes)) << bytes;
  }
}

TEST_F(SizesTest, AttachmentsThere) {
  for (const size_t bytes : SizesAroundBoundaries()) {
    ASSERT_OK(client_.Consume(0, bytes)) << bytes;
  }
}

TEST_F(SizesTest, AttachmentsBack) {
  for (const size_t bytes : SizesAroundBoundaries()) {
    ASSERT_OK(client_.Produce(0, bytes)) << bytes;
  }
}

// One large attachment after the other: on the software device both sides copy
// them from some time on (joint_memory.h), whatever their sizes.
TEST_F(SizesTest, ManyLargeAttachmentsBothWays) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const size_t bytes = (size_t{256} << 10) + random() % (size_t{3} << 20);
    ASSERT_OK(client_.Echo(0, bytes)) << bytes;
  }
}

TEST_F(SizesTest, EverySizeAtTheEagerLimitBothWays) {
  for (const size_t bytes : SizesAroundTheEagerLimit()) {
    ASSERT_OK(client_.Echo(bytes)) << bytes;
    ASSERT_OK(client_.Echo(0, bytes)) << bytes;
    // Together they reach the limit.
    ASSERT_OK(client_.Echo(bytes / 2, bytes - bytes / 2)) << bytes;
  }
}

TEST_F(SizesTest, EverySizeAtTheSmallLimitsBothWays) {
  for (const size_t bytes : SizesAroundTheSmallLimits()) {
    ASSERT_OK(client_.Echo(bytes)) << bytes;
    ASSERT_OK(client_.Echo(0, bytes)) << bytes;
    ASSERT_OK(client_.Echo(bytes / 2, bytes - bytes / 2)) << bytes;
  }
}

TEST_F(SizesTest, MessagesWithAttachmentsOfAllKindsOfSizes) {
  constexpr size_t kSizes[] = {0,      1,      100,     5'000,     10'200,
                               10'300, 70'000, 100'000, 1'048'577, 3'000'000};
  for (const size_t message : kSizes) {
    for (const size_t attachment : kSizes) {
      ASSERT_OK(client_.Echo(message, attachment))
          << message << " and " << attachment;
    }
  }
}

// One attachment, of memory that the caller keeps, for more calls at once than
// a connection has fronts (front_ring.h) and slots to send in, with messages
// that fit into one and that do not.
TEST_F(SizesTest, OneAttachmentForManyCallsAtOnce) {
  constexpr size_t kCalls = 400;
  absl::StatusOr<rpc::Buffer> buffer = client_.channel().AllocateBuffer(7'000);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  benchmarks::FillTestPattern(reinterpret_cast<char*>(buffer->mutable_data()),
                              buffer->size(), /*seed=*/1);
  const rpc::BufferChain attachment(*std::move(buffer));
  const uint64_t checksum = benchmarks::Checksum(attachment);

  struct Call {
    TimedContext context;
    Blob request;
    Blob response;
    rpc::Status status;
  };
  std::vector<Call> calls(kCalls);
  absl::BlockingCounter left(kCalls);
  for (size_t i = 0; i < kCalls; ++i) {
    Call& call = calls[i];
    call.request.set_data(benchmarks::TestPattern(i % 200, /*seed=*/i));
    call.context.set_attachment(attachment);
    client_.stub().async()->Echo(&call.context, &call.request, &call.response,
                                 [&](rpc::Status status) {
                                   call.status = std::move(status);
                                   left.DecrementCount();
                                 });
  }
  left.Wait();
  for (const Call& call : calls) {
    ASSERT_OK(call.status);
    ASSERT_EQ(call.response.data(), call.request.data());
    ASSERT_EQ(benchmarks::Checksum(call.context.attachment()), checksum);
  }
  // Nothing was written to what others could see.
  EXPECT_EQ(benchmarks::Checksum(attachment), checksum);
}

// What lies in front of an attachment is free to be written to where nobody
// else refers to its memory, and only there.
TEST_F(SizesTest, BytesInFrontOfAnAttachmentStayWhereSomebodyKeepsThem) {
  constexpr size_t kFront = 500;
  for (const size_t bytes : {100, 3'000, 8'000}) {
    absl::StatusOr<rpc::Buffer> whole =
        client_.channel().AllocateBuffer(kFront + bytes);
    ASSERT_TRUE(whole.ok()) << whole.status();
    benchmarks::FillTestPattern(reinterpret_cast<char*>(whole->mutable_data()),
                                whole->size(), /*seed=*/2);
    const std::string before(whole->view());
    rpc::Buffer front = whole->Slice(0, kFront);
    rpc::BufferChain attachment(whole->Slice(kFront, bytes));
    whole->reset();
    for (const bool front_is_kept : {true, false}) {
      if (!front_is_kept) front.reset();
      TimedContext context;
      context.set_attachment(front_is_kept ? attachment
                                           : std::move(attachment));
      Blob request;
      Blob response;
      request.set_data("beside it");
      ASSERT_OK(client_.stub().Echo(&context, request, &response));
      EXPECT_EQ(response.data(), request.data());
      EXPECT_TRUE(context.attachment().ToString() == before.substr(kFront));
      EXPECT_EQ(front.view(), front_is_kept ? before.substr(0, kFront) : "");
    }
  }
}

TEST(EagerLimitTest, HoldsForOtherLimitsOfEitherSide) {
  for (const int64_t limit : {1024, 2048, 4096, 9000}) {
    const Arguments arguments = {{"verbena.eager_limit_bytes", limit}};
    const PeerProcess server = PeerProcess::Serve(arguments);
    ASSERT_TRUE(server.ok()) << server.address();
    const Client client(server.address(), arguments);
    for (int64_t bytes = limit - 100; bytes <= limit + 4; ++bytes) {
      ASSERT_OK(client.Echo(static_cast<size_t>(bytes))) << limit;
      ASSERT_OK(client.Echo(0, static_cast<size_t>(bytes))) << limit;
    }
  }
}

// The numbers that a refusal has to name.
bool Names(const rpc::Status& status, const std::string& a,
           const std::string& b) {
  return status.error_message().find(a) != std::string::npos &&
         status.error_message().find(b) != std::string::npos;
}

TEST(OverLimitTest, AServersLimitsRefuseRequests) {
  const PeerProcess server =
      PeerProcess::Serve({{"grpc.max_receive_message_length", 1'000'000},
                          {"verbena.max_receive_attachment_bytes", 2'000'000}});
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  EXPECT_OK(client.Consume(999'000, 2'000'000));
  for (int i = 0; i < 20; ++i) {
    rpc::Status status = client.Consume(3'000'000);
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(status, "1000000", "30000")) << status;
    status = client.Consume(0, 2'000'001);
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(status, "2000000", "2000001")) << status;
    // The connection lives on.
    EXPECT_OK(client.Consume(900'000, 100));
  }
}

// Of what goes in one frame, and of what does not.
const Arguments kSmallLimits = {{"grpc.max_receive_message_length", 100},
                                {"verbena.max_receive_attachment_bytes", 50}};

// `call` sends or asks for a message and an attachment of these sizes.
template <typename Call>
void ExpectSmallLimitsHold(Call call) {
  for (const size_t bytes : {200, 900, 5'000, 50'000}) {
    rpc::Status status = call(bytes, 0);
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED)) << bytes;
    EXPECT_TRUE(Names(status, "100", "")) << status;
    status = call(0, bytes);
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED)) << bytes;
    EXPECT_TRUE(Names(status, "50", std::to_string(bytes))) << status;
    EXPECT_OK(call(90, 50));
  }
}

TEST(OverLimitTest, AServersSmallLimitRefusesEagerRequestsToo) {
  const PeerProcess server = PeerProcess::Serve(kSmallLimits);
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  ExpectSmallLimitsHold([&client](size_t message, size_t attachment) {
    return client.Consume(message, attachment);
  });
}

TEST(OverLimitTest, AClientsLimitsRefuseResponses) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(),
                      {{"grpc.max_receive_message_length", 1'000'000},
                       {"verbena.max_receive_attachment_bytes", 2'000'000}});
  EXPECT_OK(client.Produce(999'000, 2'000'000));
  for (int i = 0; i < 20; ++i) {
    rpc::Status status = client.Produce(3'000'000);
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(status, "1000000", "30000")) << status;
    status = client.Produce(0, 2'000'001);
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(status, "2000000", "2000001")) << status;
    EXPECT_OK(client.Produce(900'000, 100));
  }
}

TEST(OverLimitTest, AClientsSmallLimitRefusesEagerResponsesToo) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), kSmallLimits);
  ExpectSmallLimitsHold([&client](size_t message, size_t attachment) {
    return client.Produce(message, attachment);
  });
}

TEST(OverLimitTest, AClientsOwnSendLimitRefusesBeforeSending) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(),
                      {{"grpc.max_send_message_length", 1000}});
  const rpc::Status status = client.Consume(2000);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_TRUE(Names(status, "1000", "200")) << status;
  EXPECT_OK(client.Consume(900));
}

}  // namespace
}  // namespace e2e
