// Goal: calls are repeated when, and only when, gRPC's proposal A6 says so.
#include "rpc/routing/call_retries.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rpc/internal/header_block.h"

namespace rpc::routing {
namespace {

using internal::HeaderKind;

constexpr uint32_t kUnavailable = 14;
constexpr uint32_t kInternal = 13;
constexpr std::optional<absl::Duration> kNever = std::nullopt;

const RetryPolicy kPolicy = {.max_attempts = 4,
                             .initial_backoff = absl::Seconds(1),
                             .max_backoff = absl::Seconds(3),
                             .backoff_multiplier = 2,
                             .retryable_codes = 1u << kUnavailable};

double Least(double low, double) { return low; }
double Most(double, double high) { return high; }

std::optional<absl::Duration> Fail(CallRetries& retries,
                                   std::optional<absl::Duration> pushback = {},
                                   CallRetries::Draw draw = Least) {
  return retries.AfterAttempt(kUnavailable, /*committed=*/false, pushback,
                              draw);
}

std::optional<absl::Duration> PushbackIn(HeaderKind kind,
                                         const std::string& value) {
  std::string header;
  internal::HeaderBlockWriter writer(&header);
  writer.Add(HeaderKind::kTrailingMetadata, "another", "1");
  writer.Add(kind, "grpc-retry-pushback-ms", value);
  return CallRetries::PushbackIn(
      {reinterpret_cast<const std::byte*>(header.data()), header.size()});
}

TEST(CallRetriesTest, PausesGrowUpToTheLongestWithJitter) {
  CallRetries retries(&kPolicy, nullptr);
  EXPECT_EQ(Fail(retries), absl::Seconds(1));
  EXPECT_EQ(Fail(retries, {}, Least), absl::Seconds(1.6));
  EXPECT_EQ(Fail(retries, {}, Most), absl::Seconds(3.6));
}

TEST(CallRetriesTest, AttemptsAreCountedTheFirstIncluded) {
  CallRetries retries(&kPolicy, nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_NE(Fail(retries), kNever);
  EXPECT_EQ(Fail(retries), kNever);
}

TEST(CallRetriesTest, WithoutAPolicyNothingIsRepeated) {
  CallRetries retries(nullptr, nullptr);
  EXPECT_EQ(Fail(retries), kNever);
}

TEST(CallRetriesTest, OtherCodesAndCommittedCallsAreNotRepeated) {
  CallRetries retries(&kPolicy, nullptr);
  EXPECT_EQ(retries.AfterAttempt(kInternal, false, {}, Least), kNever);
  EXPECT_EQ(retries.AfterAttempt(0, false, {}, Least), kNever);
  EXPECT_EQ(retries.AfterAttempt(kUnavailable, true, {}, Least), kNever);
}

TEST(CallRetriesTest, TheServerSaysWhenAndPausesBeginAnew) {
  CallRetries retries(&kPolicy, nullptr);
  EXPECT_EQ(Fail(retries), absl::Seconds(1));
  EXPECT_EQ(Fail(retries, absl::Milliseconds(7)), absl::Milliseconds(7));
  EXPECT_EQ(Fail(retries), absl::Seconds(1));
}

TEST(CallRetriesTest, TheServerSaysNo) {
  CallRetries retries(&kPolicy, nullptr);
  EXPECT_EQ(Fail(retries, absl::Milliseconds(-1)), kNever);
}

TEST(CallRetriesTest, PushbackIsTrailingMetadata) {
  EXPECT_EQ(CallRetries::PushbackIn({}), kNever);
  EXPECT_EQ(PushbackIn(HeaderKind::kTrailingMetadata, "12"),
            absl::Milliseconds(12));
  EXPECT_EQ(PushbackIn(HeaderKind::kInitialMetadata, "12"), kNever);
  for (const char* value : {"-1", "soon", "", "1.5"}) {
    EXPECT_LT(PushbackIn(HeaderKind::kTrailingMetadata, value).value(),
              absl::ZeroDuration())
        << value;
  }
}

TEST(CallRetriesTest, TheNextAttemptSaysHowManyThereWere) {
  CallRetries retries(&kPolicy, nullptr);
  Fail(retries);
  Fail(retries);
  std::string header;
  retries.AddAttempts(header);
  EXPECT_LE(header.size(), CallRetries::kHeaderBytes);
  internal::HeaderBlockReader reader(header);
  internal::HeaderEntry entry;
  ASSERT_TRUE(reader.Next(&entry));
  EXPECT_EQ(entry.kind, HeaderKind::kInitialMetadata);
  EXPECT_EQ(entry.key, "grpc-previous-rpc-attempts");
  EXPECT_EQ(entry.value, "2");
}

TEST(RetryThrottleTest, NothingIsRepeatedWhileHalfTheTokensAreGone) {
  RetryThrottle throttle({.max_milli_tokens = 4000, .milli_token_ratio = 600});
  EXPECT_TRUE(throttle.OnFailure());                                // 3
  EXPECT_FALSE(throttle.OnFailure());                               // 2
  throttle.OnSuccess();                                             // 2.6
  throttle.OnSuccess();                                             // 3.2
  EXPECT_TRUE(throttle.OnFailure());                                // 2.2
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(throttle.OnFailure());  // 0
  for (int i = 0; i < 100; ++i) throttle.OnSuccess();               // 4
  EXPECT_TRUE(throttle.OnFailure());
}

TEST(RetryThrottleTest, ChannelsToAServerShareOne) {
  const RetryThrottling limits = {.max_milli_tokens = 4000,
                                  .milli_token_ratio = 600};
  const auto one = RetryThrottle::ForServer("host:1", limits);
  EXPECT_EQ(RetryThrottle::ForServer("host:1", limits), one);
  EXPECT_NE(RetryThrottle::ForServer("host:2", limits), one);
}

TEST(RetryThrottleTest, OtherLimitsFindItAsFullAsItWas) {
  const auto throttle = RetryThrottle::ForServer(
      "host:3", {.max_milli_tokens = 4000, .milli_token_ratio = 1000});
  EXPECT_TRUE(throttle->OnFailure());  // 3 of 4
  RetryThrottle::ForServer(
      "host:3", {.max_milli_tokens = 8000, .milli_token_ratio = 500});
  EXPECT_TRUE(throttle->OnFailure());   // 5 of 8
  EXPECT_FALSE(throttle->OnFailure());  // 4
  throttle->OnSuccess();                // 4.5
  EXPECT_FALSE(throttle->OnFailure());  // 3.5
}

TEST(RetryThrottleTest, WhatCannotBeRepeatedCountsByItsCode) {
  RetryThrottle throttle({.max_milli_tokens = 2000, .milli_token_ratio = 1000});
  CallRetries retries(&kPolicy, &throttle);
  // Malformed requests say nothing of the server.
  retries.AfterAttempt(kInternal, false, {}, Least);
  // Committed ones do.
  retries.AfterAttempt(kUnavailable, true, {}, Least);
  EXPECT_EQ(Fail(retries), kNever);
  retries.AfterAttempt(0, false, {}, Least);
  retries.AfterAttempt(0, false, {}, Least);
  retries.AfterAttempt(0, false, {}, Least);
  EXPECT_EQ(Fail(retries), kNever);  // 1 of 2
}

}  // namespace
}  // namespace rpc::routing
