// Goal: the key-value server's storage keeps what it promises in storage.h:
// values by reference, versions that compare-and-swap can rely on, a memory
// limit that is exact, and a List that is complete while others write.
//
// Method: through Storage's public functions alone; concurrency with plain
// threads, which the sanitizer builds watch.
#include "examples/kv/storage.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/kv/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/buffer.h"

namespace kv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

rpc::BufferChain Bytes(std::string_view bytes) {
  return rpc::BufferChain(rpc::Buffer::CopyOf(bytes));
}

std::string ValueOf(Storage& storage, std::string_view key) {
  const std::optional<StoredValue> value = storage.Get(key);
  return value.has_value() ? value->bytes.ToString() : "(none)";
}

// Every key with `prefix`, page by page.
std::vector<std::string> ListAll(Storage& storage, std::string_view prefix,
                                 uint32_t page_size) {
  std::vector<std::string> keys;
  std::string token;
  do {
    absl::StatusOr<ListPage> page = storage.List(prefix, page_size, token);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) break;
    EXPECT_LE(page->entries.size(), page_size);
    for (ListEntry& entry : page->entries) keys.push_back(std::move(entry.key));
    token = std::move(page->next_page_token);
  } while (!token.empty());
  return keys;
}

TEST(StorageTest, GetReturnsWhatWasPut) {
  Storage storage({});
  ASSERT_TRUE(storage.Put("a", Bytes("one")).ok());
  ASSERT_TRUE(storage.Put("b", Bytes("")).ok());
  EXPECT_EQ(ValueOf(storage, "a"), "one");
  EXPECT_EQ(ValueOf(storage, "b"), "");
  EXPECT_FALSE(storage.Get("c").has_value());
}

TEST(StorageTest, GetSharesTheMemoryThatWasPut) {
  Storage storage({});
  rpc::BufferChain value = Bytes(std::string(100000, 'x'));
  const void* memory = value.buffers()[0].data();
  ASSERT_TRUE(storage.Put("a", std::move(value)).ok());
  EXPECT_EQ(storage.Get("a")->bytes.buffers()[0].data(), memory);
}

TEST(StorageTest, AValueInUseSurvivesItsReplacementAndDeletion) {
  Storage storage({});
  ASSERT_TRUE(storage.Put("a", Bytes("first")).ok());
  const std::optional<StoredValue> first = storage.Get("a");
  ASSERT_TRUE(storage.Put("a", Bytes("second")).ok());
  const std::optional<StoredValue> second = storage.Get("a");
  EXPECT_TRUE(storage.Delete("a"));
  EXPECT_EQ(first->bytes.ToString(), "first");
  EXPECT_EQ(second->bytes.ToString(), "second");
}

TEST(StorageTest, KeysMayHoldAnyByte) {
  Storage storage({});
  const std::string key("\0\n\xff/ ", 5);
  ASSERT_TRUE(storage.Put(key, Bytes("v")).ok());
  EXPECT_EQ(ValueOf(storage, key), "v");
  EXPECT_THAT(ListAll(storage, "", 10), ElementsAre(key));
}

TEST(StorageTest, RefusesEmptyAndOverlongKeys) {
  Storage storage({});
  EXPECT_EQ(storage.Put("", Bytes("v")).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(storage.Put(std::string(kMaxKeyBytes, 'k'), Bytes("v")).ok());
  const absl::Status too_long =
      storage.Put(std::string(kMaxKeyBytes + 1, 'k'), Bytes("v")).status();
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(too_long.message()), HasSubstr("4096"));
}

TEST(StorageTest, DeleteSaysWhetherThereWasAKey) {
  Storage storage({});
  EXPECT_FALSE(storage.Delete("a"));
  ASSERT_TRUE(storage.Put("a", Bytes("v")).ok());
  EXPECT_TRUE(storage.Delete("a"));
  EXPECT_FALSE(storage.Delete("a"));
  EXPECT_FALSE(storage.Get("a").has_value());
}

TEST(StorageVersionTest, GrowWithEveryChangeAndAreNotReusedAfterDelete) {
  Storage storage({.version_base = 1000});
  const uint64_t first = *storage.Put("a", Bytes("1"));
  EXPECT_GT(first, 1000u);
  const uint64_t second = *storage.Put("a", Bytes("1"));
  EXPECT_GT(second, first);
  storage.Delete("a");
  EXPECT_GT(*storage.Put("a", Bytes("1")), second);
}

TEST(CompareAndSwapTest, SwapsOnlyTheExpectedVersion) {
  Storage storage({});
  const uint64_t version = *storage.Put("a", Bytes("old"));

  SwapResult stale = *storage.CompareAndSwap("a", version + 1, Bytes("new"));
  EXPECT_FALSE(stale.swapped);
  EXPECT_EQ(stale.version, version);
  EXPECT_EQ(ValueOf(storage, "a"), "old");

  SwapResult done = *storage.CompareAndSwap("a", version, Bytes("new"));
  EXPECT_TRUE(done.swapped);
  EXPECT_GT(done.version, version);
  EXPECT_EQ(ValueOf(storage, "a"), "new");
}

TEST(CompareAndSwapTest, VersionZeroMeansThatTheKeyMustNotExist) {
  Storage storage({});
  EXPECT_FALSE(storage.CompareAndSwap("a", 7, Bytes("x"))->swapped);
  EXPECT_FALSE(storage.Get("a").has_value());
  EXPECT_TRUE(storage.CompareAndSwap("a", 0, Bytes("x"))->swapped);
  EXPECT_FALSE(storage.CompareAndSwap("a", 0, Bytes("y"))->swapped);
  EXPECT_EQ(ValueOf(storage, "a"), "x");
}

TEST(CompareAndSwapTest, ConcurrentIncrementsAreNeverLost) {
  constexpr int kThreads = 4;
  constexpr int kIncrements = 500;
  Storage storage({});
  ASSERT_TRUE(storage.Put("counter", Bytes("0")).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&storage] {
      for (int done = 0; done < kIncrements;) {
        const StoredValue old = *storage.Get("counter");
        const int next = std::stoi(old.bytes.ToString()) + 1;
        if (storage
                .CompareAndSwap("counter", old.version,
                                Bytes(absl::StrCat(next)))
                ->swapped) {
          ++done;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ValueOf(storage, "counter"), absl::StrCat(kThreads * kIncrements));
}

TEST(StorageMemoryTest, RefusesWhatDoesNotFitAndSaysWhy) {
  Storage storage({.shards = 1, .memory_limit_bytes = 10000});
  ASSERT_TRUE(storage.Put("a", Bytes(std::string(6000, 'x'))).ok());
  const absl::Status full =
      storage.Put("b", Bytes(std::string(6000, 'y'))).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("10000"));
  EXPECT_THAT(std::string(full.message()), HasSubstr("--memory_limit_bytes"));
  EXPECT_FALSE(storage.Get("b").has_value());

  // A larger value for an old key: refused, and the key keeps what it had.
  EXPECT_FALSE(storage.Put("a", Bytes(std::string(20000, 'z'))).ok());
  EXPECT_EQ(ValueOf(storage, "a"), std::string(6000, 'x'));
  EXPECT_EQ(storage.stats().rejected_for_memory, 2u);
}

TEST(StorageMemoryTest, ReplacingCreditsTheOldValue) {
  Storage storage({.shards = 1, .memory_limit_bytes = 10000});
  ASSERT_TRUE(storage.Put("a", Bytes(std::string(9000, 'x'))).ok());
  EXPECT_TRUE(storage.Put("a", Bytes(std::string(9500, 'y'))).ok());
  EXPECT_TRUE(storage.Put("a", Bytes("y")).ok());
  EXPECT_TRUE(storage.Put("b", Bytes(std::string(9000, 'x'))).ok());
}

TEST(StorageMemoryTest, CountsWholeBuffersAndReturnsToZero) {
  Storage storage({});
  // 10 bytes that keep a block of 1000 from its other uses.
  rpc::Buffer large = rpc::Buffer::FromHeap(1000);
  ASSERT_TRUE(storage.Put("a", rpc::BufferChain(large.Slice(0, 10))).ok());
  EXPECT_GE(storage.stats().memory_used_bytes, 1000u);
  EXPECT_EQ(storage.stats().value_bytes, 10u);

  // Two slices of one block count once.
  rpc::BufferChain slices(large.Slice(0, 10));
  slices.Append(large.Slice(20, 10));
  ASSERT_TRUE(storage.Put("a", std::move(slices)).ok());
  EXPECT_LT(storage.stats().memory_used_bytes, 1500u);

  EXPECT_TRUE(storage.Delete("a"));
  EXPECT_EQ(storage.stats().memory_used_bytes, 0u);
  EXPECT_EQ(storage.stats().value_bytes, 0u);
  EXPECT_EQ(storage.stats().keys, 0u);
}

TEST(StorageMemoryTest, TheLimitHoldsUnderConcurrentPuts) {
  constexpr uint64_t kLimit = 200000;
  Storage storage({.memory_limit_bytes = kLimit});
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i) {
        const std::string key = absl::StrCat("k", (i * 7 + t) % 50);
        if (i % 5 == 4) {
          storage.Delete(key);
        } else {
          (void)storage.Put(key, Bytes(std::string(i * 31 % 9000, 'x')));
        }
        if (storage.stats().memory_used_bytes > kLimit) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  for (const std::string& key : ListAll(storage, "", 100)) storage.Delete(key);
  EXPECT_EQ(storage.stats().memory_used_bytes, 0u);
}

TEST(StorageStatsTest, CountsCalls) {
  Storage storage({.memory_limit_bytes = 1 << 20});
  const uint64_t version = *storage.Put("a", Bytes("12345"));
  ASSERT_TRUE(storage.Put("b", Bytes("678")).ok());
  storage.Get("a");
  storage.Get("nowhere");
  ASSERT_TRUE(storage.CompareAndSwap("a", version, Bytes("1")).ok());
  ASSERT_TRUE(storage.List("", 10, "").ok());
  storage.Delete("b");
  const StorageStats stats = storage.stats();
  EXPECT_EQ(stats.keys, 1u);
  EXPECT_EQ(stats.value_bytes, 1u);
  EXPECT_EQ(stats.memory_limit_bytes, uint64_t{1} << 20);
  EXPECT_EQ(stats.gets, 2u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.puts, 2u);
  EXPECT_EQ(stats.deletes, 1u);
  EXPECT_EQ(stats.compare_and_swaps, 1u);
  EXPECT_EQ(stats.lists, 1u);
}

TEST(StorageListTest, PagesAreInOrderCompleteAndEndWithNoToken) {
  for (const int shards : {1, 3, 16}) {
    for (const uint32_t page_size : {1u, 2u, 7u, 100u, 1000u}) {
      Storage storage({.shards = shards});
      std::vector<std::string> expected;
      for (int i = 0; i < 100; ++i) {
        expected.push_back(absl::StrFormat("dir/%03d", i));
        ASSERT_TRUE(storage.Put(expected.back(), Bytes("v")).ok());
      }
      EXPECT_EQ(ListAll(storage, "", page_size), expected)
          << shards << " shards, pages of " << page_size;
    }
  }
}

TEST(StorageListTest, TellsOnlyKeysWithThePrefix) {
  Storage storage({});
  for (const char* key : {"a", "a/1", "a/2", "a0", "b", "a/", "A/1"}) {
    ASSERT_TRUE(storage.Put(key, Bytes(key)).ok());
  }
  EXPECT_THAT(ListAll(storage, "a/", 2), ElementsAre("a/", "a/1", "a/2"));
  EXPECT_THAT(ListAll(storage, "zzz", 2), ElementsAre());
  const ListPage page = *storage.List("a/2", 0, "");
  ASSERT_EQ(page.entries.size(), 1u);
  EXPECT_EQ(page.entries[0].value_bytes, 3u);
  EXPECT_EQ(page.entries[0].version, storage.Get("a/2")->version);
}

TEST(StorageListTest, AFullLastPageHasNoToken) {
  Storage storage({.shards = 2});
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(storage.Put(key, Bytes("v")).ok());
  }
  const ListPage page = *storage.List("", 4, "");
  EXPECT_EQ(page.entries.size(), 4u);
  EXPECT_EQ(page.next_page_token, "");
}

TEST(StorageListTest, RefusesATokenOfAnotherPrefix) {
  Storage storage({});
  EXPECT_EQ(storage.List("a/", 10, "b/1").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StorageListTest, APageOfLongKeysEndsEarly) {
  Storage storage({});
  for (int i = 0; i < 400; ++i) {
    const std::string key =
        absl::StrFormat("%04d%s", i, std::string(4000, 'k'));
    ASSERT_TRUE(storage.Put(key, Bytes("v")).ok());
  }
  const ListPage page = *storage.List("", 1000, "");
  EXPECT_LT(page.entries.size(), 300u);
  EXPECT_NE(page.next_page_token, "");
  EXPECT_EQ(ListAll(storage, "", 1000).size(), 400u);
}

// Keys that stay are listed exactly once while others come and go around them,
// also where the key that a token names is deleted before the next page.
TEST(StorageListTest, ListsLastingKeysOnceUnderConcurrentChange) {
  Storage storage({.shards = 4});
  std::vector<std::string> lasting;
  for (int i = 0; i < 300; ++i) {
    lasting.push_back(absl::StrFormat("%03d-lasting", i));
    ASSERT_TRUE(storage.Put(lasting.back(), Bytes("v")).ok());
  }
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      const std::string key = absl::StrFormat("%03d-passing", i * 37 % 300);
      (void)storage.Put(key, Bytes("v"));
      (void)storage.Put(lasting[i % 300], Bytes("changed"));
      storage.Delete(absl::StrFormat("%03d-passing", i * 53 % 300));
    }
  });
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> keys = ListAll(storage, "", 7);
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(),
              keys.size());
    std::erase_if(
        keys, [](const std::string& key) { return key.ends_with("passing"); });
    EXPECT_EQ(keys, lasting);
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace kv
