#include "rpc/internal/free_list.h"

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/rpc/counted_node.h"

namespace rpc::internal {
namespace {

using Node = testing::CountedNode;

std::atomic<int>& living = Node::living;

FreeListNode* TakeOrMake(FreeList& list) {
  FreeListNode* const node = list.Take();
  return node != nullptr ? node : new Node;
}

TEST(FreeListTest, GivesBackWhatItGot) {
  FreeList list;
  EXPECT_EQ(list.Take(), nullptr);
  auto* const node = new Node;
  list.Give(node);
  EXPECT_EQ(list.Take(), node);
  EXPECT_EQ(list.Take(), nullptr);
  delete node;
  EXPECT_EQ(living.load(), 0);
}

TEST(FreeListTest, DestructorDeletesWhatEveryThreadKept) {
  auto list = std::make_unique<FreeList>();
  std::atomic<bool> given{false};
  std::atomic<bool> end{false};
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) list->Give(new Node);
    given.store(true);
    while (!end.load()) std::this_thread::yield();
  });
  while (!given.load()) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) list->Give(new Node);
  EXPECT_EQ(living.load(), 210);
  list.reset();
  EXPECT_EQ(living.load(), 0);
  end.store(true);
  other.join();
}

TEST(FreeListTest, ThreadsEndDeletesWhatItKept) {
  FreeList list;
  std::thread([&] { list.Give(new Node); }).join();
  EXPECT_EQ(living.load(), 0);
}

TEST(FreeListTest, SurplusOfOneThreadServesAnother) {
  FreeList list;
  constexpr int kNodes = 200;
  std::thread([&] {
    for (int i = 0; i < kNodes; ++i) list.Give(new Node);
  }).join();
  // The thread's own went with it; the shared ones are there.
  std::set<FreeListNode*> taken;
  while (FreeListNode* const node = list.Take()) taken.insert(node);
  EXPECT_EQ(static_cast<int>(taken.size()), living.load());
  EXPECT_GE(taken.size(), kNodes - FreeList::kPerThread);
  for (FreeListNode* node : taken) delete node;
  EXPECT_EQ(living.load(), 0);
}

TEST(FreeListTest, GiveSharedServesAnotherThread) {
  FreeList list;
  auto* const node = new Node;
  std::thread([&] { list.GiveShared(node); }).join();
  EXPECT_EQ(list.Take(), node);
  delete node;
}

TEST(FreeListTest, SharedListIsBounded) {
  FreeList list;
  for (uint32_t i = 0; i < 3 * FreeList::kShared; ++i) list.Give(new Node);
  EXPECT_LE(living.load(),
            static_cast<int>(FreeList::kShared + FreeList::kPerThread));
}

TEST(FreeListTest, ManyListsOneAfterTheOther) {
  EXPECT_EQ(living.load(), 0);
  std::vector<std::unique_ptr<FreeList>> lists;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 20; ++i) lists.push_back(std::make_unique<FreeList>());
    for (const auto& list : lists) list->Give(new Node);
    lists.resize(lists.size() / 2);
  }
  lists.clear();
  EXPECT_EQ(living.load(), 0);
}

TEST(FreeListTest, ThreadsTakeAndGive) {
  auto list = std::make_unique<FreeList>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::vector<FreeListNode*> held;
      for (int round = 0; round < 20000; ++round) {
        if (held.size() < static_cast<size_t>(1 + (round * (i + 1)) % 200)) {
          held.push_back(TakeOrMake(*list));
        } else {
          list->Give(held.back());
          held.pop_back();
        }
      }
      for (FreeListNode* node : held) list->Give(node);
    });
  }
  for (std::thread& thread : threads) thread.join();
  list.reset();
  EXPECT_EQ(living.load(), 0);
}

}  // namespace
}  // namespace rpc::internal
