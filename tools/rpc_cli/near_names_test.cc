// Goal: a name that is nearly right brings the right one, and no others.
#include "tools/rpc_cli/near_names.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rpc_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string>& Known() {
  static const auto* const known = new std::vector<std::string>{
      "hello.Greeter", "hello.v2.Greeter", "store.Keys", "store.Values"};
  return *known;
}

TEST(NearNamesTest, AFewLettersMayBeWrong) {
  EXPECT_THAT(NearNames("store.Kyes", Known()), ElementsAre("store.Keys"));
  EXPECT_THAT(NearNames("store.Value", Known()), ElementsAre("store.Values"));
  EXPECT_THAT(NearNames("STORE.KEYS", Known()), ElementsAre("store.Keys"));
  EXPECT_THAT(NearNames("stor.Keyss", Known()), ElementsAre("store.Keys"));
}

TEST(NearNamesTest, ThePackageMayBeMissingOrWrong) {
  EXPECT_THAT(NearNames("Keys", Known()), ElementsAre("store.Keys"));
  EXPECT_THAT(NearNames("wrong.Keys", Known()), ElementsAre("store.Keys"));
}

TEST(NearNamesTest, TheMostSimilarComesFirst) {
  EXPECT_THAT(NearNames("hello.Greter", Known()),
              ElementsAre("hello.Greeter", "hello.v2.Greeter"));
}

TEST(NearNamesTest, WhatIsQuiteDifferentIsNotNear) {
  EXPECT_THAT(NearNames("Scheduler", Known()), IsEmpty());
  EXPECT_THAT(NearNames("", Known()), IsEmpty());
  EXPECT_THAT(NearNames("x", {}), IsEmpty());
}

TEST(NearNamesTest, NoMoreThanFive) {
  EXPECT_EQ(NearNames("a0", {"a1", "a2", "a3", "a4", "a5", "a6"}).size(), 5u);
}

TEST(SuggestionTest, WithoutNearNamesSaysWhatThereIs) {
  EXPECT_EQ(Suggestion("Keys", Known()), "; near it: store.Keys");
  EXPECT_EQ(Suggestion("Scheduler", {"a.B", "a.C"}), "; there is: a.B, a.C");
  EXPECT_EQ(Suggestion("Scheduler", {}), "; there is none at all");
  EXPECT_EQ(Suggestion("Scheduler", std::vector<std::string>(9, "a.B")),
            "; list and describe show what there is");
}

}  // namespace
}  // namespace rpc_cli
