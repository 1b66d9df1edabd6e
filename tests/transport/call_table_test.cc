// Goal: a handle names its call and never another one; aliases do too.
// Method: stale handles after each way of reuse, then random use beside a map.
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rdma_transport/call.h"

namespace rdma {
namespace {

TEST(CallTableTest, FindsWhatItCreated) {
  CallTable table;
  Call* const one = table.Create();
  Call* const other = table.Create();
  EXPECT_NE(one->handle, other->handle);
  EXPECT_EQ(table.Find(one->handle), one);
  EXPECT_EQ(table.Find(other->handle), other);
  EXPECT_EQ(table.live(), 2u);
}

TEST(CallTableTest, NoHandleIsNoCall) {
  CallTable table;
  EXPECT_EQ(table.Find({}), nullptr);
  EXPECT_TRUE(static_cast<bool>(table.Create()->handle));
  EXPECT_EQ(table.Find({}), nullptr);
}

TEST(CallTableTest, ForeignHandlesFindNothing) {
  CallTable table;
  const uint64_t handle = table.Create()->handle.value;
  for (const uint64_t foreign :
       {handle + 1, handle + (uint64_t{1} << 32), uint64_t{UINT32_MAX},
        UINT64_MAX, uint64_t{1} << 63}) {
    EXPECT_EQ(table.Find({foreign}), nullptr) << foreign;
  }
}

TEST(CallTableTest, AStaleHandleFindsNothingThoughTheEntryIsReused) {
  CallTable table;
  std::set<uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) {
    Call* const call = table.Create();
    const rpc::CallHandle handle = call->handle;
    EXPECT_TRUE(seen.insert(handle.value).second) << "used twice";
    table.Destroy(call);
    EXPECT_EQ(table.Find(handle), nullptr);
  }
  EXPECT_EQ(table.live(), 0u);
}

TEST(CallTableTest, ACallStartsAfreshInReusedMemory) {
  CallTable table;
  Call* call = table.Create();
  call->timeout_us = 7;
  call->busy = call->closed = call->received_end = true;
  call->cut_off = true;
  call->sent_count = 3;
  call->inbox.push_back(std::make_unique<HeldFrame>());
  call->outcome.status = absl::InternalError("old");
  table.Destroy(call);
  call = table.Create();
  EXPECT_EQ(call->timeout_us, 0u);
  EXPECT_FALSE(call->busy || call->closed || call->received_end);
  EXPECT_FALSE(call->cut_off);
  EXPECT_EQ(call->sent_count, 0u);
  EXPECT_TRUE(call->inbox.empty());
  EXPECT_TRUE(call->outcome.status.ok());
  EXPECT_EQ(call->connection, nullptr);
  EXPECT_FALSE(call->scheduled());
  EXPECT_FALSE(static_cast<bool>(call->alias));
}

TEST(CallTableTest, DestroyingTakesItsTimerOffTheWheel) {
  TimerWheel wheel(0);
  CallTable table;
  Call* const call = table.Create();
  wheel.Schedule(call, 1000);
  table.Destroy(call);
  EXPECT_TRUE(wheel.empty());
}

TEST(CallTableTest, AnAliasNamesTheCallAsWell) {
  CallTable table;
  const rpc::CallHandle alias = CallTable::NewAlias();
  EXPECT_EQ(table.Find(alias), nullptr) << "before there is a call";
  Call* const call = table.Create(alias);
  EXPECT_EQ(call->alias, alias);
  EXPECT_NE(call->handle, alias);
  EXPECT_EQ(table.Find(alias), call);
  EXPECT_EQ(table.Find(call->handle), call);
  table.Destroy(call);
  EXPECT_EQ(table.Find(alias), nullptr);
  table.Create();  // in the same entry
  EXPECT_EQ(table.Find(alias), nullptr);
}

TEST(CallTableTest, CallsForGuestsAreCountedWhileTheyLive) {
  CallTable table;
  const rpc::CallHandle alias = CallTable::NewAlias();
  Call* const aliased = table.Create(alias);
  Call* const plain = table.Create();
  table.Create();
  EXPECT_EQ(table.live_for_guests(), 0u);
  table.SetForGuests(aliased);
  table.SetForGuests(plain);
  EXPECT_EQ(table.live_for_guests(), 2u);
  EXPECT_EQ(table.Find(alias), aliased);
  table.Destroy(aliased);
  EXPECT_EQ(table.live_for_guests(), 1u);
  EXPECT_EQ(table.Find(alias), nullptr);
  table.Destroy(plain);
  EXPECT_EQ(table.live_for_guests(), 0u);
  table.Destroy(table.Create());
  EXPECT_EQ(table.live_for_guests(), 0u);
}

TEST(CallTableTest, AliasesOfAllThreadsDiffer) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10'000;
  std::vector<std::vector<uint64_t>> taken(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<uint64_t>& mine : taken) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kEach; ++i) {
        mine.push_back(CallTable::NewAlias().value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), size_t{kThreads} * kEach);
  EXPECT_EQ(all.count(0), 0u);
}

TEST(CallTableTest, ForEachVisitsTheLivingOnce) {
  CallTable table;
  std::vector<Call*> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(table.Create());
  for (int i = 0; i < 10; i += 2) table.Destroy(calls[i]);
  std::multiset<Call*> visited;
  table.ForEach([&visited](Call& call) { visited.insert(&call); });
  EXPECT_EQ(visited, (std::multiset<Call*>{calls[1], calls[3], calls[5],
                                           calls[7], calls[9]}));
}

TEST(CallTableTest, AgreesWithAMapUnderRandomUse) {
  std::mt19937 random(7);
  CallTable table;
  std::map<uint64_t, Call*> model;  // handles and aliases
  std::vector<rpc::CallHandle> every;
  std::vector<Call*> live;
  for (int step = 0; step < 50'000; ++step) {
    if (random() % 2 == 0 || live.empty()) {
      const bool aliased = random() % 2 == 0;
      Call* const call =
          aliased ? table.Create(CallTable::NewAlias()) : table.Create();
      model[call->handle.value] = call;
      every.push_back(call->handle);
      if (aliased) {
        model[call->alias.value] = call;
        every.push_back(call->alias);
      }
      live.push_back(call);
    } else {
      std::swap(live[random() % live.size()], live.back());
      Call* const call = live.back();
      live.pop_back();
      model.erase(call->handle.value);
      model.erase(call->alias.value);
      table.Destroy(call);
    }
    ASSERT_EQ(table.live(), live.size());
    const rpc::CallHandle any = every[random() % every.size()];
    const auto found = model.find(any.value);
    ASSERT_EQ(table.Find(any), found == model.end() ? nullptr : found->second);
  }
}

}  // namespace
}  // namespace rdma
