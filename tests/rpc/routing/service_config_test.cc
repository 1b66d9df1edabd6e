// Goal: a service config means what gRPC's documents say, and one that is wrong
// is refused with every reason.
#include "rpc/routing/service_config.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rpc::routing {
namespace {

std::unique_ptr<const ServiceConfig> Parse(const std::string& json) {
  absl::StatusOr<std::unique_ptr<const ServiceConfig>> config =
      ServiceConfig::Parse(json);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *std::move(config) : *ServiceConfig::Parse("");
}

std::string ErrorOf(const std::string& json) {
  const absl::Status status = ServiceConfig::Parse(json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  return std::string(status.message());
}

void ExpectError(const std::string& json, const std::string& part) {
  const std::string error = ErrorOf(json);
  EXPECT_NE(error.find(part), std::string::npos) << error << "\n" << json;
}

// With all methods' config.
std::string Method(const std::string& fields) {
  return absl::StrCat(R"({"methodConfig": [{"name": [{}], )", fields, "}]}");
}

std::string Retry(const std::string& attempts, const std::string& initial,
                  const std::string& max, const std::string& multiplier,
                  const std::string& codes) {
  return Method(absl::StrCat(
      R"("retryPolicy": {"maxAttempts": )", attempts, R"(, "initialBackoff": )",
      initial, R"(, "maxBackoff": )", max, R"(, "backoffMultiplier": )",
      multiplier, R"(, "retryableStatusCodes": )", codes, "}"));
}

TEST(ServiceConfigTest, AnEmptyOneSaysNothing) {
  for (const char* json : {"", "{}", R"({"unknown": [1, 2]})"}) {
    const auto config = Parse(json);
    EXPECT_EQ(config->policy(), "");
    EXPECT_FALSE(config->throttling().has_value());
    const MethodConfig& method = config->ForMethod("/a.B/C");
    EXPECT_EQ(method.timeout, absl::InfiniteDuration());
    EXPECT_FALSE(method.wait_for_ready);
    EXPECT_EQ(method.max_request_bytes, UINT64_MAX);
    EXPECT_EQ(method.max_response_bytes, UINT64_MAX);
    EXPECT_FALSE(method.retry.has_value());
  }
}

TEST(ServiceConfigTest, EveryFieldOfAMethodHasItsEffect) {
  const auto config = Parse(Method(R"(
      "timeout": "1.500s", "waitForReady": true,
      "maxRequestMessageBytes": 10, "maxResponseMessageBytes": "20",
      "retryPolicy": {
        "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "10s",
        "backoffMultiplier": 1.6,
        "retryableStatusCodes": ["UNAVAILABLE", "ABORTED"]})"));
  const MethodConfig& method = config->ForMethod("/a.B/C");
  EXPECT_EQ(method.timeout, absl::Milliseconds(1500));
  EXPECT_TRUE(method.wait_for_ready);
  EXPECT_EQ(method.max_request_bytes, 10u);
  EXPECT_EQ(method.max_response_bytes, 20u);
  ASSERT_TRUE(method.retry.has_value());
  EXPECT_EQ(method.retry->max_attempts, 3);
  EXPECT_EQ(method.retry->initial_backoff, absl::Milliseconds(100));
  EXPECT_EQ(method.retry->max_backoff, absl::Seconds(10));
  EXPECT_EQ(method.retry->backoff_multiplier, 1.6);
  EXPECT_TRUE(method.retry->IsRetryable(14));
  EXPECT_TRUE(method.retry->IsRetryable(10));
  EXPECT_FALSE(method.retry->IsRetryable(0));
  EXPECT_FALSE(method.retry->IsRetryable(46));
}

TEST(ServiceConfigTest, TheMostSpecialNameCounts) {
  const auto config = Parse(R"({"methodConfig": [
      {"name": [{}], "timeout": "1s"},
      {"name": [{"service": "a.B"}, {"service": "a.C", "method": ""}],
       "timeout": "2s"},
      {"name": [{"service": "a.B", "method": "M"}], "timeout": "3s"}]})");
  const auto seconds = [&](const char* path) {
    return absl::ToInt64Seconds(config->ForMethod(path).timeout);
  };
  EXPECT_EQ(seconds("/a.B/M"), 3);
  EXPECT_EQ(seconds("/a.B/N"), 2);
  EXPECT_EQ(seconds("/a.C/M"), 2);
  EXPECT_EQ(seconds("/a.D/M"), 1);
}

TEST(ServiceConfigTest, AttemptsAreFiveAtMost) {
  const auto config =
      Parse(Retry("100", R"("1s")", R"("1s")", "2", R"(["INTERNAL"])"));
  EXPECT_EQ(config->ForMethod("/a/b").retry->max_attempts, 5);
}

TEST(ServiceConfigTest, ThePolicyIsTheFirstThatIsKnown) {
  EXPECT_EQ(Parse(R"({"loadBalancingConfig":
                      [{"grpclb": {}}, {"round_robin": {}}]})")
                ->policy(),
            "round_robin");
  EXPECT_EQ(Parse(R"({"loadBalancingPolicy": "ROUND_ROBIN"})")->policy(),
            "round_robin");
  EXPECT_EQ(Parse(R"({"loadBalancingPolicy": "round_robin",
                      "loadBalancingConfig": [{"pick_first": {}}]})")
                ->policy(),
            "pick_first");
}

TEST(ServiceConfigTest, ThrottlingHasThreeDecimals) {
  const auto config =
      Parse(R"({"retryThrottling": {"maxTokens": 2, "tokenRatio": 1.0009}})");
  EXPECT_EQ(config->throttling()->max_milli_tokens, 2000);
  EXPECT_EQ(config->throttling()->milli_token_ratio, 1000);
  EXPECT_EQ(
      Parse(R"({"retryThrottling": {"maxTokens": "2", "tokenRatio": "0.1"}})")
          ->throttling()
          ->milli_token_ratio,
      100);
}

TEST(BadServiceConfigTest, IsNoJson) {
  for (const char* json : {"{", "[]", "1", "text", "{\"a\" 1}"}) {
    ExpectError(json, "JSON parse error");
  }
}

TEST(BadServiceConfigTest, FieldsAreOfAnotherKind) {
  ExpectError(R"({"methodConfig": 1})", "field:methodConfig error:is not an");
  ExpectError(R"({"methodConfig": [1]})", "methodConfig[0] error:is not an ob");
  ExpectError(Method(R"("timeout": 1)"),
              "field:methodConfig[0].timeout error:is not a string");
  ExpectError(Method(R"("waitForReady": "yes")"), "is not a boolean");
  ExpectError(Method(R"("maxRequestMessageBytes": -1)"), "0 to 4294967295");
  ExpectError(Method(R"("maxResponseMessageBytes": 1.5)"), "0 to 4294967295");
  ExpectError(Method(R"("maxResponseMessageBytes": [])"), "is not a number");
  ExpectError(Method(R"("retryPolicy": true)"), "is not an object");
}

TEST(BadServiceConfigTest, DurationsAreNone) {
  for (const char* text : {"", "s", "1", "-1s", "1.s", ".5s", "1.0123456789s",
                           "1ms", "99999999999999999999s"}) {
    ExpectError(Method(absl::StrCat(R"("timeout": ")", text, R"(")")),
                "is not a duration");
  }
}

TEST(BadServiceConfigTest, NamesAreGivenTwiceOrByHalf) {
  ExpectError(R"({"methodConfig": [{"name": [{"method": "M"}]}]})",
              "has no service");
  ExpectError(R"({"methodConfig": [{"name": [{}]}, {"name": [{}]}]})",
              "duplicate default method config");
  ExpectError(R"({"methodConfig": [{"name": [{"service": "a"},
                                             {"service": "a"}]}]})",
              "methodConfig[0].name[1] error:multiple method configs for path "
              "/a/");
}

TEST(BadServiceConfigTest, RetryPoliciesAreIncompleteOrOutOfBounds) {
  const std::string error = ErrorOf(Method(R"("retryPolicy": {})"));
  for (const char* field : {"maxAttempts error:field not present",
                            "initialBackoff error:field not present",
                            "maxBackoff error:field not present",
                            "backoffMultiplier error:field not present",
                            "retryableStatusCodes error:must be non-empty"}) {
    EXPECT_NE(error.find(field), std::string::npos) << error;
  }
  const std::string second = R"("1s")";
  const std::string codes = R"(["INTERNAL"])";
  ExpectError(Retry("1", second, second, "1", codes), "must be at least 2");
  ExpectError(Retry("2", R"("0s")", second, "1", codes), "greater than 0");
  ExpectError(Retry("2", second, R"("0s")", "1", codes), "greater than 0");
  ExpectError(Retry("2", second, second, "0", codes), "greater than 0");
  ExpectError(Retry("2", second, second, "1", "[]"), "must be non-empty");
  ExpectError(Retry("2", second, second, "1", R"(["LATER"])"), "LATER");
  ExpectError(Retry("2", second, second, "1", "[14]"), "is not a string");
}

TEST(BadServiceConfigTest, PoliciesAreNotKnown) {
  ExpectError(R"({"loadBalancingPolicy": "best"})", "unknown LB policy");
  ExpectError(R"({"loadBalancingConfig": [{"best": {}}]})",
              "No known policies in list: best");
  ExpectError(R"({"loadBalancingConfig": []})", "No known policies");
  ExpectError(R"({"loadBalancingConfig": [{}]})", "must have one field");
}

TEST(BadServiceConfigTest, ThrottlingIsIncompleteOrOutOfBounds) {
  ExpectError(R"({"retryThrottling": {}})",
              "maxTokens error:field not present");
  ExpectError(R"({"retryThrottling": {"maxTokens": 0, "tokenRatio": 1}})",
              "must be greater than 0");
  ExpectError(R"({"retryThrottling": {"maxTokens": 1, "tokenRatio": 0.0001}})",
              "must be at least 0.001");
}

}  // namespace
}  // namespace rpc::routing
