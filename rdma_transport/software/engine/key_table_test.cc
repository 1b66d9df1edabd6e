// Goal: a key grants exactly its range, and stops doing so for good once it is
// revoked. Method: the table on plain memory, looked at through a view, as a
// peer looks at it.
#include "rdma_transport/software/engine/key_table.h"

#include <infiniband/verbs.h>

#include <memory>
#include <set>

#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

constexpr uint32_t kEntries = 8;
constexpr uint32_t kPd = 7;

class KeyTableTest : public testing::Test {
 protected:
  KeyRange Range(uint64_t address, uint64_t length) {
    KeyRange range;
    range.address = address;
    range.length = length;
    range.arena = 3;
    range.arena_offset = 4096;
    range.access = IBV_ACCESS_REMOTE_READ;
    range.pd = kPd;
    return range;
  }

  std::unique_ptr<KeyEntry[]> entries_ = std::make_unique<KeyEntry[]>(kEntries);
  KeyTable table_{entries_.get(), kEntries};
  KeyView view_ = table_.view();
};

class KnownKeyTest : public KeyTableTest {
 protected:
  bool Learn(uint32_t key, uint64_t at, uint64_t bytes) {
    return known_.Learn(view_, key, kPd, IBV_ACCESS_REMOTE_READ, at, bytes);
  }

  KnownKey known_;
};

TEST_F(KnownKeyTest, AllowsWhatTheTableAllows) {
  const uint32_t key = *table_.Allocate();
  table_.Grant(key, Range(1000, 100));
  EXPECT_FALSE(known_.Allows(0, 0, 0)) << "nothing is known";
  EXPECT_FALSE(known_.Allows(key, 1000, 100));
  EXPECT_TRUE(Learn(key, 1010, 20));
  for (const uint64_t at : {0, 999, 1000, 1001, 1050, 1099, 1100, 1101}) {
    for (const uint64_t bytes : {0, 1, 50, 99, 100, 101}) {
      EXPECT_EQ(known_.Allows(key, at, bytes),
                view_.AllowsLocal(key, kPd, IBV_ACCESS_REMOTE_READ, at, bytes))
          << at << " " << bytes;
    }
  }
  EXPECT_FALSE(known_.Allows(key, 1000, UINT64_MAX));
  EXPECT_FALSE(known_.Allows(key, UINT64_MAX, 100));
  EXPECT_FALSE(known_.Allows(key + 1, 1000, 100));
}

TEST_F(KnownKeyTest, IsNotLearntWhereTheTableDoesNotAllowIt) {
  const uint32_t key = *table_.Allocate();
  table_.Grant(key, Range(1000, 100));
  EXPECT_FALSE(Learn(key, 999, 1));
  EXPECT_FALSE(
      known_.Learn(view_, key, kPd + 1, IBV_ACCESS_REMOTE_READ, 1000, 100));
  EXPECT_FALSE(
      known_.Learn(view_, key, kPd, IBV_ACCESS_LOCAL_WRITE, 1000, 100));
  EXPECT_FALSE(Learn(0, 1000, 100));
  EXPECT_FALSE(known_.Allows(key, 1000, 100));
}

TEST_F(KnownKeyTest, IsForgottenOnceItIsRevoked) {
  const uint32_t key = *table_.Allocate();
  table_.Grant(key, Range(1000, 100));
  ASSERT_TRUE(Learn(key, 1000, 100));
  table_.Revoke(key);
  EXPECT_FALSE(known_.Allows(key, 1000, 100));
  table_.Grant(key, Range(2000, 100));
  EXPECT_FALSE(known_.Allows(key, 1000, 100));
  EXPECT_FALSE(known_.Allows(key, 2000, 100)) << "that is another grant";
  EXPECT_TRUE(Learn(key, 2000, 100));
  EXPECT_TRUE(known_.Allows(key, 2000, 100));
}

TEST_F(KnownKeyTest, SeveralAreKnownAtATime) {
  KnownKeys known;
  constexpr uint32_t kCount = 5;
  uint32_t keys[kCount];
  for (uint32_t i = 0; i < kCount; ++i) {
    keys[i] = *table_.Allocate();
    const uint64_t at = 1000 * (i + 1);
    table_.Grant(keys[i], Range(at, 100));
    ASSERT_TRUE(known.PlaceOf(keys[i]).Learn(view_, keys[i], kPd,
                                             IBV_ACCESS_REMOTE_READ, at, 1));
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    KnownKey& place = known.PlaceOf(keys[i]);
    EXPECT_TRUE(place.Allows(keys[i], 1000 * (i + 1), 100)) << i;
    EXPECT_FALSE(place.Allows(keys[i], 1000 * (i + 2), 100)) << i;
  }
  table_.Revoke(keys[2]);
  EXPECT_FALSE(known.PlaceOf(keys[2]).Allows(keys[2], 3000, 100));
  EXPECT_TRUE(known.PlaceOf(keys[3]).Allows(keys[3], 4000, 100));
}

TEST_F(KeyTableTest, FindsWhatWasGranted) {
  const uint32_t key = *table_.Allocate();
  KeyRange found;
  EXPECT_FALSE(view_.Find(key, &found)) << "nothing is granted yet";
  table_.Grant(key, Range(1000, 100));
  ASSERT_TRUE(view_.Find(key, &found));
  EXPECT_EQ(found.key(), key);
  EXPECT_EQ(found.arena, 3u);
  EXPECT_EQ(found.OffsetOf(1010), 4106u);
  EXPECT_TRUE(view_.StillValid(found));
}

TEST_F(KeyTableTest, RevokedKeysAreInvalidEvenWhereTheyWereFoundBefore) {
  const uint32_t key = *table_.Allocate();
  table_.Grant(key, Range(1000, 100));
  KeyRange found;
  ASSERT_TRUE(view_.Find(key, &found));
  table_.Revoke(key);
  EXPECT_FALSE(view_.StillValid(found));
  EXPECT_FALSE(view_.Find(key, &found));
}

TEST_F(KeyTableTest, TheSameKeyGrantedAgainIsAnotherGrant) {
  const uint32_t key = *table_.Allocate();
  table_.Grant(key, Range(1000, 100));
  KeyRange before;
  ASSERT_TRUE(view_.Find(key, &before));
  table_.Revoke(key);
  table_.Grant(key, Range(5000, 100));
  EXPECT_FALSE(view_.StillValid(before));
  KeyRange after;
  ASSERT_TRUE(view_.Find(key, &after));
  EXPECT_EQ(after.address, 5000u);
}

// However often the consumer stepped its key on before: as a window does with
// each binding.
TEST_F(KeyTableTest, TheNextOwnerOfAnEntryHasNoKeyOfTheLastOne) {
  for (int grants : {0, 1, 2, 3, 255, 256, 300}) {
    const uint32_t first = *table_.Allocate();
    uint32_t key = first;
    for (int i = 0; i < grants; ++i) {
      key = ibv_inc_rkey(key);
      table_.Grant(key, Range(1000, 100));
      table_.Revoke(key);
    }
    KeyRange late;
    table_.Free(key);
    const uint32_t next = *table_.Allocate();
    EXPECT_EQ(next >> 8, key >> 8);
    EXPECT_EQ(next, ibv_inc_rkey(key)) << grants;
    table_.Grant(next, Range(1000, 100));
    EXPECT_FALSE(view_.Find(key, &late)) << grants;
    table_.Revoke(next);
    table_.Free(next);
  }
}

TEST_F(KeyTableTest, WhoMayBeWritingIsKnownOfRevokedKeysToo) {
  const uint32_t reads = *table_.Allocate();
  const uint32_t writes = *table_.Allocate();
  table_.Grant(reads, Range(1000, 100));
  KeyRange range = Range(1000, 100);
  range.access |= IBV_ACCESS_REMOTE_ATOMIC;
  table_.Grant(writes, range);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(view_.MayBeWritten(reads));
    EXPECT_TRUE(view_.MayBeWritten(writes));
    if (i == 0) table_.Revoke(reads);
    if (i == 0) table_.Revoke(writes);
  }
  for (uint32_t nonsense : {0u, kEntries << 8, ~0u}) {
    EXPECT_FALSE(view_.MayBeWritten(nonsense)) << nonsense;
  }
}

TEST_F(KeyTableTest, TheConsumersPartMustFit) {
  const uint32_t key = *table_.Allocate();
  table_.Grant(ibv_inc_rkey(key), Range(1000, 100));
  KeyRange found;
  EXPECT_FALSE(view_.Find(key, &found));
  EXPECT_TRUE(view_.Find(ibv_inc_rkey(key), &found));
}

TEST_F(KeyTableTest, NoKeyOutsideOfTheTableIsFound) {
  KeyRange found;
  for (uint32_t key : {0u, 1u, 0xffu, kEntries << 8, ~0u}) {
    EXPECT_FALSE(view_.Find(key, &found)) << key;
  }
}

TEST_F(KeyTableTest, HandsOutEveryEntryButTheFirstOnce) {
  std::set<uint32_t> indices;
  while (const std::optional<uint32_t> key = table_.Allocate()) {
    EXPECT_TRUE(indices.insert(*key >> 8).second);
  }
  EXPECT_EQ(indices.size(), kEntries - 1);
  EXPECT_FALSE(indices.contains(0));
}

TEST_F(KeyTableTest, AFreedEntryComesBackWithAnotherKey) {
  const uint32_t key = *table_.Allocate();
  table_.Grant(key, Range(1000, 100));
  table_.Revoke(key);
  table_.Free(key);
  const uint32_t again = *table_.Allocate();
  EXPECT_EQ(again >> 8, key >> 8);
  EXPECT_NE(again, key);
}

TEST_F(KeyTableTest, LocalKeysAreCheckedAlike) {
  const uint32_t key = *table_.Allocate();
  EXPECT_FALSE(view_.AllowsLocal(key, kPd, 0, 1000, 0));
  table_.Grant(key, Range(1000, 100));
  EXPECT_TRUE(view_.AllowsLocal(key, kPd, 0, 1000, 100));
  EXPECT_TRUE(view_.AllowsLocal(key, kPd, IBV_ACCESS_REMOTE_READ, 1050, 50));
  EXPECT_FALSE(view_.AllowsLocal(key, kPd, IBV_ACCESS_LOCAL_WRITE, 1000, 1));
  EXPECT_FALSE(view_.AllowsLocal(key, kPd + 1, 0, 1000, 1));
  EXPECT_FALSE(view_.AllowsLocal(key + 1, kPd, 0, 1000, 1));
  EXPECT_FALSE(view_.AllowsLocal(0, kPd, 0, 1000, 1));
  EXPECT_FALSE(view_.AllowsLocal(~0u, kPd, 0, 1000, 1));
  EXPECT_FALSE(view_.AllowsLocal(key, kPd, 0, 999, 2));
  EXPECT_FALSE(view_.AllowsLocal(key, kPd, 0, 1001, 100));
  EXPECT_FALSE(view_.AllowsLocal(key, kPd, 0, 1050, UINT64_MAX));
}

TEST_F(KeyTableTest, AWindowIsNoLocalKey) {
  const uint32_t key = *table_.Allocate();
  KeyRange range = Range(1000, 100);
  range.access |= kWindowKey;
  table_.Grant(key, range);
  EXPECT_FALSE(view_.AllowsLocal(key, kPd, 0, 1000, 100));
}

TEST(KeyRangeTest, ContainsOnlyWhatLiesInside) {
  KeyRange range;
  range.address = 1000;
  range.length = 100;
  EXPECT_TRUE(range.Contains(1000, 100));
  EXPECT_TRUE(range.Contains(1099, 1));
  EXPECT_TRUE(range.Contains(1100, 0));
  EXPECT_FALSE(range.Contains(999, 1));
  EXPECT_FALSE(range.Contains(1000, 101));
  EXPECT_FALSE(range.Contains(1100, 1));
  EXPECT_FALSE(range.Contains(1050, UINT64_MAX)) << "wraps around";
  EXPECT_FALSE(range.Contains(UINT64_MAX, 2)) << "wraps around";
}

TEST(KeyRangeTest, AllowsItsPdItsQpAndItsRightsOnly) {
  KeyRange range;
  range.address = 1000;
  range.length = 100;
  range.access = IBV_ACCESS_REMOTE_READ;
  range.pd = kPd;
  EXPECT_TRUE(range.Allows(kPd, 5, IBV_ACCESS_REMOTE_READ, 1000, 1));
  EXPECT_FALSE(range.Allows(kPd + 1, 5, IBV_ACCESS_REMOTE_READ, 1000, 1));
  EXPECT_FALSE(range.Allows(kPd, 5, IBV_ACCESS_REMOTE_WRITE, 1000, 1));
  EXPECT_FALSE(range.Allows(
      kPd, 5, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, 1000, 1));
  range.qp_num = 6;  // a type 2 window
  EXPECT_FALSE(range.Allows(kPd, 5, IBV_ACCESS_REMOTE_READ, 1000, 1));
  EXPECT_TRUE(range.Allows(kPd, 6, IBV_ACCESS_REMOTE_READ, 1000, 1));
}

}  // namespace
}  // namespace rdma::soft
