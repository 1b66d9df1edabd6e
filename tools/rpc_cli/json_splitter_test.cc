// Goal: every value is found whole, however the text comes in pieces.
// Method: cases by hand, and random values in random pieces.
#include "tools/rpc_cli/json_splitter.h"

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rpc_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> TakeAll(JsonSplitter& splitter) {
  std::vector<std::string> values;
  while (std::optional<std::string> value = splitter.Next()) {
    values.push_back(*value);
  }
  return values;
}

std::vector<std::string> Split(const std::string& text) {
  JsonSplitter splitter;
  splitter.Add(text);
  splitter.End();
  return TakeAll(splitter);
}

TEST(JsonSplitterTest, ValuesOfAllKindsWithAndWithoutSpaceBetween) {
  EXPECT_THAT(Split(R"({"a":1}{"b":[{}]} [2,[3]]"x" "y")"),
              ElementsAre(R"({"a":1})", R"({"b":[{}]})", "[2,[3]]", R"("x")",
                          R"("y")"));
  EXPECT_THAT(Split(" 1 true\nnull{}-2.5e3"),
              ElementsAre("1", "true", "null", "{}", "-2.5e3"));
  EXPECT_THAT(Split(""), IsEmpty());
  EXPECT_THAT(Split(" \n\t"), IsEmpty());
}

TEST(JsonSplitterTest, BracketsAndQuotesWithinStringsAreText) {
  for (const char* value : {R"({"a":"}"})", R"({"a":"\"}"})", R"({"a":"\\"})",
                            R"({'a':'"}'})", R"({"a":"'}"})", R"("\\\"{")"}) {
    EXPECT_THAT(Split(std::string(value) + value), ElementsAre(value, value));
  }
}

TEST(JsonSplitterTest, WhatIsNoJsonIsLeftToTheParser) {
  EXPECT_THAT(Split("}{}"), ElementsAre("}", "{}"));
  EXPECT_THAT(Split("{]1"), ElementsAre("{]", "1"));
  EXPECT_THAT(Split("a:b, c"), ElementsAre("a:b,", "c"));
}

TEST(JsonSplitterTest, AnUnfinishedValueWaitsForTheRest) {
  for (const char* begin : {"{", "{\"a", "{\"a\\", "[1", "\"x", "12"}) {
    JsonSplitter splitter;
    splitter.Add(begin);
    EXPECT_THAT(TakeAll(splitter), IsEmpty()) << begin;
    EXPECT_TRUE(splitter.HasUnfinished()) << begin;
  }
  JsonSplitter splitter;
  splitter.Add("{} 1");
  EXPECT_THAT(TakeAll(splitter), ElementsAre("{}"));
  splitter.Add("2 ");
  EXPECT_THAT(TakeAll(splitter), ElementsAre("12"));
  EXPECT_FALSE(splitter.HasUnfinished());
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(engine_);
  }

  std::string Text() {
    static const std::vector<std::string> kPieces = {
        "a", "{", "}", "[", "]", "'", " ", "\\\"", "\\\\", "\\n", "1", ","};
    std::string text = "\"";
    for (size_t i = Below(6); i > 0; --i)
      text += kPieces[Below(kPieces.size())];
    return text + "\"";
  }

  std::string Value(int depth) {
    const size_t kind = Below(depth > 0 ? 4 : 2);
    if (kind == 0) return std::to_string(Below(1000));
    if (kind == 1) return Text();
    std::string value = kind == 2 ? "[" : "{";
    for (size_t i = Below(4); i > 0; --i) {
      if (kind == 3) value += Text() + ":";
      value += Value(depth - 1) + (i > 1 ? ", " : "");
    }
    return value + (kind == 2 ? "]" : "}");
  }

 private:
  std::mt19937 engine_;
};

class RandomJsonTest : public testing::TestWithParam<unsigned> {};

TEST_P(RandomJsonTest, PiecesOfAnySizeGiveTheSameValues) {
  Random random(GetParam());
  std::vector<std::string> values;
  std::string text;
  for (int i = 0; i < 500; ++i) {
    values.push_back(random.Value(4));
    text += values.back() + (random.Below(2) == 0 ? "\n" : "  ");
  }
  JsonSplitter splitter;
  std::vector<std::string> found;
  const size_t most = 1 + random.Below(50);
  for (size_t at = 0; at < text.size();) {
    const size_t size = 1 + random.Below(most);
    splitter.Add(std::string_view(text).substr(at, size));
    at += size;
    for (const std::string& value : TakeAll(splitter)) found.push_back(value);
  }
  splitter.End();
  for (const std::string& value : TakeAll(splitter)) found.push_back(value);
  EXPECT_EQ(found, values);
  EXPECT_FALSE(splitter.HasUnfinished());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomJsonTest, testing::Range(0u, 10u));

}  // namespace
}  // namespace rpc_cli
