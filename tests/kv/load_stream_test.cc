// Goal: Load sets what it is sent, and ends with the reason where it cannot.
// Method: client and server in one process, over the loopback transport.
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "examples/kv/client.h"
#include "examples/kv/limits.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/kv/loopback_store.h"

namespace kv {
namespace {

rpc::BufferChain Bytes(std::string_view bytes) {
  return rpc::BufferChain(rpc::Buffer::CopyOf(bytes));
}

class LoadStreamTest : public ::testing::Test {
 protected:
  LoopbackStore store_{{.memory_limit_bytes = 10'000'000}, {.threads = 3}};
  Client::Loading loading_{store_.client(), 0};
};

TEST_F(LoadStreamTest, SetsKeysWithValuesOfAllSizes) {
  const size_t sizes[] = {0, 1, kMaxInlineValueBytes, kMaxInlineValueBytes + 1,
                          1'000'000};
  uint64_t bytes = 0;
  for (const size_t size : sizes) {
    EXPECT_TRUE(
        loading_.Put(absl::StrCat(size), Bytes(std::string(size, 'v'))));
    bytes += size;
  }
  const absl::StatusOr<LoadSummary> summary = loading_.Finish();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->keys(), std::size(sizes));
  EXPECT_EQ(summary->value_bytes(), bytes);
  for (const size_t size : sizes) {
    const absl::StatusOr<Value> value = store_.client().Get(absl::StrCat(size));
    ASSERT_TRUE(value.ok()) << size << ": " << value.status();
    EXPECT_TRUE(value->bytes.ToString() == std::string(size, 'v')) << size;
  }
}

TEST_F(LoadStreamTest, TheLastOfAKeyCounts) {
  EXPECT_TRUE(loading_.Put("key", Bytes("first")));
  EXPECT_TRUE(loading_.Put("key", Bytes("second")));
  EXPECT_EQ(loading_.Finish()->keys(), 2u);
  EXPECT_EQ(store_.client().Get("key")->bytes.ToString(), "second");
}

TEST_F(LoadStreamTest, NothingIsSomething) {
  EXPECT_EQ(loading_.Finish()->keys(), 0u);
}

TEST_F(LoadStreamTest, AKeyThatIsRefusedEndsItAndThoseBeforeStay) {
  EXPECT_TRUE(loading_.Put("good", Bytes("value")));
  loading_.Put("", Bytes("value"));
  EXPECT_EQ(loading_.Finish().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(store_.storage().Get("good").has_value());
}

TEST_F(LoadStreamTest, TheMemoryLimitEndsIt) {
  const rpc::BufferChain value = Bytes(std::string(1'000'000, 'v'));
  int count = 0;
  while (loading_.Put(absl::StrCat(count), value)) ++count;
  EXPECT_EQ(loading_.Finish().status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_GE(count, 4);  // a value counts with its whole buffer
}

TEST_F(LoadStreamTest, AnAttachmentOfAnotherSizeIsRefused) {
  rpc::ClientContext context;
  LoadSummary summary;
  const auto writer = store_.stub().Load(&context, &summary);
  LoadRequest request;
  request.set_key("key");
  request.set_attached_bytes(5);
  writer->Write(request, rpc::WriteOptions().set_attachment(Bytes("four")));
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), rpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(store_.storage().Get("key").has_value());
}

}  // namespace
}  // namespace kv
