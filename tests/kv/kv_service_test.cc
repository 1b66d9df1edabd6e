// Goal: the service answers as kv.proto says, whichever way a value comes and
// goes, and checks what clients claim. Method: handlers called directly, with
// contexts of the test's own.
#include "examples/kv/kv_service.h"

#include <string>
#include <utility>

#include "examples/kv/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"

namespace kv {
namespace {

using ::testing::HasSubstr;

class KeyValueServiceTest : public ::testing::Test {
 protected:
  rpc::Status PutInline(const std::string& key, const std::string& value) {
    rpc::ServerContext context;
    PutRequest request;
    request.set_key(key);
    request.set_inline_value(value);
    PutResponse response;
    return service_.Put(&context, &request, &response);
  }

  rpc::Status PutAttached(const std::string& key, const rpc::Buffer& value) {
    rpc::ServerContext context;
    context.attachment() = rpc::BufferChain(value);
    PutRequest request;
    request.set_key(key);
    request.set_attached_bytes(value.size());
    PutResponse response;
    return service_.Put(&context, &request, &response);
  }

  Storage storage_{{.memory_limit_bytes = 1 << 20}};
  KeyValueService service_{&storage_, [] {
                             return TransportFacts{.device = "soft0",
                                                   .messages_eager = 3,
                                                   .messages_rendezvous = 4};
                           }};
};

TEST_F(KeyValueServiceTest, SmallValuesGoInline) {
  for (const size_t bytes : {size_t{0}, size_t{1}, kMaxInlineValueBytes}) {
    const std::string value(bytes, 'v');
    ASSERT_TRUE(PutInline("key", value).ok());
    rpc::ServerContext context;
    GetRequest request;
    request.set_key("key");
    GetResponse response;
    ASSERT_TRUE(service_.Get(&context, &request, &response).ok());
    EXPECT_TRUE(response.has_inline_value());
    EXPECT_EQ(response.inline_value(), value);
    EXPECT_GT(response.version(), 0u);
  }
}

TEST_F(KeyValueServiceTest, LargeValuesAreKeptAndSentWhereTheyAre) {
  const rpc::Buffer value = rpc::Buffer::CopyOf(std::string(100'000, 'v'));
  ASSERT_TRUE(PutAttached("key", value).ok());
  const std::optional<StoredValue> stored = storage_.Get("key");
  EXPECT_EQ(stored->bytes.buffers()[0].data(), value.data());
}

TEST_F(KeyValueServiceTest, AnAttachedValueOfAnySizeIsTaken) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}}) {
    const std::string value(bytes, 'v');
    ASSERT_TRUE(PutAttached("key", rpc::Buffer::CopyOf(value)).ok()) << bytes;
    EXPECT_EQ(storage_.Get("key")->bytes.ToString(), value);
  }
}

TEST_F(KeyValueServiceTest, RefusesAnAttachmentOfAnotherSize) {
  rpc::ServerContext context;
  context.attachment() = rpc::BufferChain(rpc::Buffer::CopyOf("four"));
  PutRequest request;
  request.set_key("key");
  request.set_attached_bytes(5);
  PutResponse response;
  const rpc::Status status = service_.Put(&context, &request, &response);
  EXPECT_EQ(status.error_code(), rpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(storage_.Get("key").has_value());
}

TEST_F(KeyValueServiceTest, RefusesAnAttachmentThatIsNotAnnounced) {
  rpc::ServerContext context;
  context.attachment() = rpc::BufferChain(rpc::Buffer::CopyOf("four"));
  PutRequest request;
  request.set_key("key");
  request.set_inline_value("value");
  PutResponse response;
  EXPECT_EQ(service_.Put(&context, &request, &response).error_code(),
            rpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(KeyValueServiceTest, ARequestWithoutAValueSetsAnEmptyOne) {
  rpc::ServerContext context;
  PutRequest request;
  request.set_key("key");
  PutResponse response;
  ASSERT_TRUE(service_.Put(&context, &request, &response).ok());
  EXPECT_TRUE(storage_.Get("key")->bytes.empty());
}

TEST_F(KeyValueServiceTest, SaysThatThereIsNoSuchKey) {
  rpc::ServerContext context;
  GetRequest request;
  request.set_key("nowhere");
  GetResponse response;
  EXPECT_EQ(service_.Get(&context, &request, &response).error_code(),
            rpc::StatusCode::NOT_FOUND);
}

TEST_F(KeyValueServiceTest, SaysThatTheMemoryLimitIsReached) {
  const rpc::Status status =
      PutAttached("key", rpc::Buffer::FromHeap(size_t{2} << 20));
  EXPECT_EQ(status.error_code(), rpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("1048576"));
}

TEST_F(KeyValueServiceTest, CompareAndSwapTellsTheVersion) {
  ASSERT_TRUE(PutInline("key", "old").ok());
  const uint64_t version = storage_.Get("key")->version;
  CompareAndSwapRequest request;
  request.set_key("key");
  request.set_expected_version(version);
  request.set_inline_value("new");
  CompareAndSwapResponse response;
  rpc::ServerContext first;
  ASSERT_TRUE(service_.CompareAndSwap(&first, &request, &response).ok());
  EXPECT_TRUE(response.swapped());
  const uint64_t swapped_version = response.version();

  response.Clear();
  rpc::ServerContext second;
  ASSERT_TRUE(service_.CompareAndSwap(&second, &request, &response).ok());
  EXPECT_FALSE(response.swapped());
  EXPECT_EQ(response.version(), swapped_version);
}

TEST_F(KeyValueServiceTest, DeletesAndLists) {
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(PutInline(key, "12").ok());
  }
  DeleteRequest delete_request;
  delete_request.set_key("b");
  DeleteResponse delete_response;
  rpc::ServerContext delete_context;
  ASSERT_TRUE(
      service_.Delete(&delete_context, &delete_request, &delete_response).ok());
  EXPECT_TRUE(delete_response.deleted());

  ListRequest request;
  request.set_page_size(1);
  ListResponse response;
  rpc::ServerContext first;
  ASSERT_TRUE(service_.List(&first, &request, &response).ok());
  ASSERT_EQ(response.entries_size(), 1);
  EXPECT_EQ(response.entries(0).key(), "a");
  EXPECT_EQ(response.entries(0).value_bytes(), 2u);

  request.set_page_token(response.next_page_token());
  response.Clear();
  rpc::ServerContext second;
  ASSERT_TRUE(service_.List(&second, &request, &response).ok());
  ASSERT_EQ(response.entries_size(), 1);
  EXPECT_EQ(response.entries(0).key(), "c");
  EXPECT_EQ(response.next_page_token(), "");
}

TEST_F(KeyValueServiceTest, StatsTellOfStorageAndTransport) {
  ASSERT_TRUE(PutInline("key", "value").ok());
  rpc::ServerContext context;
  StatsRequest request;
  StatsResponse response;
  ASSERT_TRUE(service_.Stats(&context, &request, &response).ok());
  EXPECT_EQ(response.keys(), 1u);
  EXPECT_EQ(response.value_bytes(), 5u);
  EXPECT_EQ(response.puts(), 1u);
  EXPECT_EQ(response.memory_limit_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(response.device(), "soft0");
  EXPECT_EQ(response.messages_eager(), 3u);
  EXPECT_EQ(response.messages_rendezvous(), 4u);
}

}  // namespace
}  // namespace kv
