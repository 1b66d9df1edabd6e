#include "rpc/routing/service_config.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rpc/routing/balancing_policy.h"
#include "rpc/routing/json_object.h"
#include "rpc/status.h"

namespace rpc::routing {
namespace {

constexpr uint64_t kMax32 = std::numeric_limits<uint32_t>::max();

bool IsPolicy(std::string_view name) { return MakePolicy(name, 0) != nullptr; }

std::optional<uint32_t> CodeOfName(std::string_view name) {
  for (uint32_t code = 0; code <= StatusCode::UNAUTHENTICATED; ++code) {
    if (StatusCodeName(static_cast<StatusCode>(code)) == name) return code;
  }
  return std::nullopt;
}

absl::Duration ReadBackoff(const JsonObject& policy, const std::string& field) {
  policy.Require(field);
  const std::optional<absl::Duration> backoff = policy.Duration(field);
  if (backoff == absl::ZeroDuration()) {
    policy.Complain(field, "must be greater than 0");
  }
  return backoff.value_or(absl::ZeroDuration());
}

int ReadMaxAttempts(const JsonObject& policy) {
  policy.Require("maxAttempts");
  const std::optional<uint64_t> attempts = policy.Whole("maxAttempts", kMax32);
  if (attempts.has_value() && *attempts < 2) {
    policy.Complain("maxAttempts", "must be at least 2");
  }
  return static_cast<int>(
      std::min<uint64_t>(attempts.value_or(0), RetryPolicy::kMostAttempts));
}

double ReadMultiplier(const JsonObject& policy) {
  policy.Require("backoffMultiplier");
  const std::optional<double> multiplier = policy.Number("backoffMultiplier");
  if (multiplier.has_value() && *multiplier <= 0) {
    policy.Complain("backoffMultiplier", "must be greater than 0");
  }
  return multiplier.value_or(1);
}

uint32_t ReadCodes(const JsonObject& policy) {
  uint32_t codes = 0;
  const std::vector<std::string> names = policy.Texts("retryableStatusCodes");
  for (const std::string& name : names) {
    const std::optional<uint32_t> code = CodeOfName(name);
    if (code.has_value()) {
      codes |= uint32_t{1} << *code;
    } else {
      policy.Complain("retryableStatusCodes",
                      absl::StrCat("no status code is called ", name));
    }
  }
  if (names.empty()) {
    policy.Complain("retryableStatusCodes", "must be non-empty");
  }
  return codes;
}

RetryPolicy ReadRetryPolicy(const JsonObject& policy) {
  return {.max_attempts = ReadMaxAttempts(policy),
          .initial_backoff = ReadBackoff(policy, "initialBackoff"),
          .max_backoff = ReadBackoff(policy, "maxBackoff"),
          .backoff_multiplier = ReadMultiplier(policy),
          .retryable_codes = ReadCodes(policy)};
}

MethodConfig ReadMethod(const JsonObject& object) {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  MethodConfig config;
  const absl::Duration timeout =
      object.Duration("timeout").value_or(absl::ZeroDuration());
  if (timeout > absl::ZeroDuration()) config.timeout = timeout;
  config.wait_for_ready = object.Boolean("waitForReady").value_or(false);
  config.max_request_bytes =
      object.Whole("maxRequestMessageBytes", kMax32).value_or(kNone);
  config.max_response_bytes =
      object.Whole("maxResponseMessageBytes", kMax32).value_or(kNone);
  if (const auto policy = object.Object("retryPolicy"); policy.has_value()) {
    config.retry = ReadRetryPolicy(*policy);
  }
  return config;
}

// "/service/method", "/service/", or empty for all methods.
std::string PathOfName(const JsonObject& name) {
  const std::string service = name.Text("service").value_or("");
  const std::string method = name.Text("method").value_or("");
  if (!service.empty()) return absl::StrCat("/", service, "/", method);
  if (!method.empty()) name.Complain("method", "has no service");
  return "";
}

std::string ReadPolicyList(const JsonObject& config) {
  std::vector<std::string> names;
  for (const JsonObject& entry : config.Objects("loadBalancingConfig")) {
    const std::vector<std::string> fields = entry.Fields();
    if (fields.size() != 1) {
      entry.Complain("", "must have one field, which is the policy's name");
      return "";
    }
    if (IsPolicy(fields.front())) return fields.front();
    names.push_back(fields.front());
  }
  if (config.Has("loadBalancingConfig")) {
    config.Complain(
        "loadBalancingConfig",
        absl::StrCat("No known policies in list: ", absl::StrJoin(names, " ")));
  }
  return "";
}

std::string ReadPolicy(const JsonObject& config) {
  const std::string listed = ReadPolicyList(config);
  std::string name = config.Text("loadBalancingPolicy").value_or("");
  absl::AsciiStrToLower(&name);
  if (!name.empty() && !IsPolicy(name)) {
    config.Complain("loadBalancingPolicy",
                    absl::StrCat("unknown LB policy \"", name, "\""));
  }
  return listed.empty() ? name : listed;
}

RetryThrottling ReadThrottling(const JsonObject& object) {
  object.Require("maxTokens");
  object.Require("tokenRatio");
  const std::optional<uint64_t> tokens = object.Whole("maxTokens", kMax32);
  const std::optional<double> ratio = object.Number("tokenRatio");
  // Three decimals count.
  const RetryThrottling throttling = {
      static_cast<int64_t>(tokens.value_or(0)) * 1000,
      static_cast<int64_t>(
          std::clamp(ratio.value_or(0), 0.0, double{kMax32}) * 1000 + 1e-6)};
  if (tokens == 0) object.Complain("maxTokens", "must be greater than 0");
  if (ratio.has_value() && throttling.milli_token_ratio <= 0) {
    object.Complain("tokenRatio", "must be at least 0.001");
  }
  return throttling;
}

}  // namespace

class ServiceConfigReader {
 public:
  static void Read(const JsonObject& object, ServiceConfig& config) {
    config.policy_ = ReadPolicy(object);
    const auto throttling = object.Object("retryThrottling");
    if (throttling.has_value()) {
      config.throttling_ = ReadThrottling(*throttling);
    }
    for (const JsonObject& method : object.Objects("methodConfig")) {
      config.methods_.push_back(ReadMethod(method));
      for (const JsonObject& name : method.Objects("name")) {
        AddName(name, &config.methods_.back(), config);
      }
    }
  }

 private:
  static void AddName(const JsonObject& name, const MethodConfig* method,
                      ServiceConfig& config) {
    const std::string path = PathOfName(name);
    const MethodConfig*& place =
        path.empty() ? config.default_ : config.by_path_[path];
    if (place != nullptr) {
      name.Complain(
          "", path.empty()
                  ? std::string("duplicate default method config")
                  : absl::StrCat("multiple method configs for path ", path));
    }
    place = method;
  }
};

absl::StatusOr<std::unique_ptr<const ServiceConfig>> ServiceConfig::Parse(
    const std::string& json) {
  std::unique_ptr<ServiceConfig> config(new ServiceConfig());
  JsonErrors errors;
  const std::optional<JsonObject> object =
      JsonObject::Parse(json.empty() ? "{}" : json, &errors);
  if (object.has_value()) ServiceConfigReader::Read(*object, *config);
  if (!errors.empty()) return errors.ToStatus("service config");
  return config;
}

const MethodConfig& ServiceConfig::ForMethod(std::string_view path) const {
  auto found = by_path_.find(path);
  if (found == by_path_.end()) {
    found = by_path_.find(path.substr(0, path.rfind('/') + 1));
  }
  if (found != by_path_.end()) return *found->second;
  return default_ == nullptr ? none_ : *default_;
}

}  // namespace rpc::routing
