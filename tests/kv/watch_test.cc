// Goal: a watch tells what kv.proto says: every change of its keys, in order,
// with the values that were asked for. Method: client and server in one
// process, over the loopback transport with threads. (It holds nobody back: a
// client that is too slow is in kv_streams_test.)
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/kv/limits.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/kv/loopback_store.h"

namespace kv {
namespace {

rpc::BufferChain Bytes(std::string_view bytes) {
  return rpc::BufferChain(rpc::Buffer::CopyOf(bytes));
}

// A call of Watch. Waits for each event.
class Watch {
 public:
  Watch(LoopbackStore& store, const WatchRequest& request)
      : reader_(store.stub().Watch(&context_, request)) {}

  // What ends the call has no kind.
  WatchEvent Next(rpc::BufferChain* attachment = nullptr) {
    WatchEvent event;
    if (!reader_->Read(&event, attachment)) event.Clear();
    return event;
  }
  // The same in short, without versions.
  std::string NextText() {
    const WatchEvent event = Next();
    return absl::StrCat(WatchEvent::Kind_Name(event.kind()), " ", event.key());
  }
  void Cancel() { context_.TryCancel(); }
  rpc::Status Finish() { return reader_->Finish(); }

 private:
  rpc::ClientContext context_;
  const std::unique_ptr<rpc::ClientReader<WatchEvent>> reader_;
};

class WatchTest : public ::testing::Test {
 protected:
  uint64_t Put(const std::string& key, const std::string& value) {
    const absl::StatusOr<PutResponse> put =
        store_.client().Put(key, Bytes(value));
    EXPECT_TRUE(put.ok()) << put.status();
    return put.ok() ? put->version() : 0;
  }
  void Delete(const std::string& key) {
    EXPECT_TRUE(store_.client().Delete(key).ok());
  }

  static WatchRequest Prefix(const std::string& prefix) {
    WatchRequest request;
    request.set_prefix(prefix);
    return request;
  }

  LoopbackStore store_{{.memory_limit_bytes = uint64_t{1} << 30},
                       {.threads = 3}};
};

TEST_F(WatchTest, TellsTheChangesOfItsKeysInTheirOrder) {
  Put("a/before", "x");
  Watch watch(store_, Prefix("a/"));
  ASSERT_EQ(watch.Next().kind(), WatchEvent::SYNCED);
  const uint64_t first = Put("a/1", "one");
  Put("b/1", "elsewhere");
  const uint64_t second = Put("a/1", "");
  Delete("a/none");
  Delete("a/1");

  const WatchEvent set = watch.Next();
  EXPECT_EQ(set.kind(), WatchEvent::PUT);
  EXPECT_EQ(set.key(), "a/1");
  EXPECT_EQ(set.version(), first);
  EXPECT_EQ(set.value_bytes(), 3u);
  EXPECT_EQ(set.value_case(), WatchEvent::VALUE_NOT_SET);
  const WatchEvent again = watch.Next();
  EXPECT_EQ(again.kind(), WatchEvent::PUT);
  EXPECT_EQ(again.version(), second);
  EXPECT_EQ(again.value_bytes(), 0u);
  const WatchEvent deleted = watch.Next();
  EXPECT_EQ(deleted.kind(), WatchEvent::DELETED);
  EXPECT_EQ(deleted.key(), "a/1");
  EXPECT_EQ(deleted.version(), second);
}

TEST_F(WatchTest, ASwapIsAChangeAndALostRaceIsNone) {
  Watch watch(store_, Prefix("k"));
  ASSERT_EQ(watch.Next().kind(), WatchEvent::SYNCED);
  EXPECT_TRUE(store_.client().CompareAndSwap("k1", 0, Bytes("x"))->swapped());
  EXPECT_FALSE(store_.client().CompareAndSwap("k1", 0, Bytes("y"))->swapped());
  Put("k2", "z");
  EXPECT_EQ(watch.NextText(), "PUT k1");
  EXPECT_EQ(watch.NextText(), "PUT k2");
}

// More of them than are looked for at once.
TEST_F(WatchTest, PresentKeysComeFirstWhereTheyAreAskedFor) {
  constexpr int kKeys = 250;
  for (int i = 0; i < kKeys; ++i) Put(absl::StrFormat("p/%03d", i), "x");
  Put("q", "x");
  WatchRequest request = Prefix("p/");
  request.set_present_first(true);
  Watch watch(store_, request);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(watch.NextText(), absl::StrFormat("PUT p/%03d", i));
  }
  EXPECT_EQ(watch.NextText(), "SYNCED ");
  Put("p/new", "x");
  EXPECT_EQ(watch.NextText(), "PUT p/new");
}

TEST_F(WatchTest, ValuesOfTheSizeThatIsAskedForComeAlong) {
  const std::string largest(100'000, 'v');
  Put("v/1", "present");
  WatchRequest request = Prefix("v/");
  request.set_present_first(true);
  request.set_max_value_bytes(largest.size());
  Watch watch(store_, request);
  EXPECT_EQ(watch.Next().inline_value(), "present");
  ASSERT_EQ(watch.Next().kind(), WatchEvent::SYNCED);

  Put("v/2", std::string(kMaxInlineValueBytes, 'v'));
  EXPECT_EQ(watch.Next().inline_value().size(), kMaxInlineValueBytes);
  Put("v/3", largest);
  rpc::BufferChain attachment;
  const WatchEvent attached = watch.Next(&attachment);
  EXPECT_EQ(attached.attached_bytes(), largest.size());
  EXPECT_TRUE(attachment.ToString() == largest);
  Put("v/4", largest + "v");
  const WatchEvent larger = watch.Next();
  EXPECT_EQ(larger.value_bytes(), largest.size() + 1);
  EXPECT_EQ(larger.value_case(), WatchEvent::VALUE_NOT_SET);
}

// Fewer than may wait, so that none is lost.
TEST_F(WatchTest, AnEventHasTheValueOfItsOwnVersionOrNone) {
  WatchRequest request = Prefix("k");
  request.set_max_value_bytes(100);
  Watch watch(store_, request);
  ASSERT_EQ(watch.Next().kind(), WatchEvent::SYNCED);
  std::map<uint64_t, std::string> values;
  for (size_t i = 1; i < kMaxWaitingChanges; ++i) {
    const std::string value = absl::StrCat(i);
    values[Put("k", value)] = value;
  }
  for (const auto& [version, value] : values) {
    const WatchEvent event = watch.Next();
    ASSERT_EQ(event.version(), version);
    ASSERT_TRUE(event.value_case() == WatchEvent::VALUE_NOT_SET ||
                event.inline_value() == value);
  }
  // Nothing comes behind it.
  Put("k", "later");
  EXPECT_EQ(watch.Next().inline_value(), "later");
}

// Present keys are read while others change them: whoever keeps the largest
// version of each key ends up with what the store has.
TEST_F(WatchTest, WhatItTellsAddsUpToWhatThereIs) {
  constexpr int kThreads = 4;
  constexpr int kChanges = 200;  // of all threads fewer than may wait
  static_assert(kThreads * kChanges < kMaxWaitingChanges);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < kChanges; ++i) {
        const std::string key = absl::StrCat("k", (i + thread) % 7);
        i % 5 == 4 ? Delete(key) : void(Put(key, "x"));
      }
    });
  }
  WatchRequest request = Prefix("k");
  request.set_present_first(true);
  Watch watch(store_, request);
  for (std::thread& thread : threads) thread.join();
  Put("k-end", "x");

  struct State {
    uint64_t version = 0;
    bool present = false;
  };
  std::map<std::string, State> seen;
  WatchEvent event;
  while (event.key() != "k-end") {
    event = watch.Next();
    ASSERT_NE(event.kind(), WatchEvent::LOST);
    ASSERT_NE(event.kind(), WatchEvent::KIND_UNSPECIFIED);
    State& state = seen[event.key()];
    if (event.version() < state.version) continue;
    state = {event.version(), event.kind() == WatchEvent::PUT};
  }
  std::map<std::string, uint64_t> present;
  for (const auto& [key, state] : seen) {
    if (state.present) present[key] = state.version;
  }
  std::map<std::string, uint64_t> stored;
  const absl::StatusOr<ListPage> page = store_.storage().List("k", 0, "");
  for (const ListEntry& entry : page->entries) {
    stored[entry.key] = entry.version;
  }
  EXPECT_EQ(present, stored);
}

TEST_F(WatchTest, EndsWhenTheServerDoes) {
  Watch idle(store_, Prefix(""));
  ASSERT_EQ(idle.Next().kind(), WatchEvent::SYNCED);
  store_.service().EndWatches();
  EXPECT_EQ(idle.NextText(), "KIND_UNSPECIFIED ");
  EXPECT_EQ(idle.Finish().error_code(), rpc::StatusCode::UNAVAILABLE);
  Watch late(store_, Prefix(""));
  EXPECT_EQ(late.Finish().error_code(), rpc::StatusCode::UNAVAILABLE);
}

// A call that were not over would hold up the shutdown, which has no deadline.
TEST_F(WatchTest, EndsWhenTheClientCancels) {
  Watch watch(store_, Prefix(""));
  ASSERT_EQ(watch.Next().kind(), WatchEvent::SYNCED);
  watch.Cancel();
  EXPECT_EQ(watch.Finish().error_code(), rpc::StatusCode::CANCELLED);
  Put("key", "value");
  store_.server().Shutdown();
}

TEST_F(WatchTest, TheClientStopsWhenItIsToldTo) {
  Put("a", "1");
  Put("b", std::string(5000, 'v'));
  WatchRequest request;
  request.set_present_first(true);
  request.set_max_value_bytes(5000);
  std::vector<uint64_t> sizes;
  const absl::Status status = store_.client().Watch(
      request, [&](const WatchEvent& event, const rpc::BufferChain& value) {
        sizes.push_back(value.size());
        return event.key() != "b";
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(sizes, (std::vector<uint64_t>{1, 5000}));
}

}  // namespace
}  // namespace kv
