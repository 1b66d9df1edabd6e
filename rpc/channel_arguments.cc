#include "rpc/channel_arguments.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/message_codec.h"
#include "rpc/logging.h"
#include "rpc/metadata.h"

namespace rpc {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// An argument that is a number within bounds.
struct NumberArgument {
  int64_t min;
  int64_t max;
  std::function<void(EndpointOptions&, int64_t)> set;
};

uint64_t UnlimitedIfNegative(int64_t value) {
  return value < 0 ? std::numeric_limits<uint64_t>::max()
                   : static_cast<uint64_t>(value);
}

NumberArgument Milliseconds(absl::Duration TransportOptions::*field) {
  return {0, kMax, [field](EndpointOptions& options, int64_t value) {
            options.transport.*field = absl::Milliseconds(value);
          }};
}

// The same where the largest int, as in gRPC, is no limit.
NumberArgument LimitInMilliseconds(absl::Duration TransportOptions::*field,
                                   int64_t min) {
  return {min, kMax, [field](EndpointOptions& options, int64_t value) {
            options.transport.*field =
                value == std::numeric_limits<int32_t>::max()
                    ? absl::InfiniteDuration()
                    : absl::Milliseconds(value);
          }};
}

template <class T>
NumberArgument Transport(T TransportOptions::*field, int64_t min, int64_t max) {
  return {min, max, [field](EndpointOptions& options, int64_t value) {
            options.transport.*field = static_cast<T>(value);
          }};
}

NumberArgument Fabric(uint8_t FabricOptions::*field, int64_t min, int64_t max) {
  return {min, max, [field](EndpointOptions& options, int64_t value) {
            options.transport.fabric.*field = static_cast<uint8_t>(value);
          }};
}

const std::map<std::string, NumberArgument>& NumberArguments() {
  using Options = TransportOptions;
  constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();
  static const auto* const arguments = new std::map<std::string,
                                                    NumberArgument>{
      {"grpc.initial_reconnect_backoff_ms",
       Milliseconds(&Options::initial_backoff)},
      {"grpc.min_reconnect_backoff_ms", Milliseconds(&Options::min_backoff)},
      {"grpc.max_reconnect_backoff_ms", Milliseconds(&Options::max_backoff)},
      {"grpc.client_idle_timeout_ms", Milliseconds(&Options::idle_timeout)},
      {"verbena.connect_timeout_ms", Milliseconds(&Options::connect_timeout)},
      {"grpc.keepalive_time_ms", Milliseconds(&Options::keepalive_time)},
      {"grpc.keepalive_timeout_ms", Milliseconds(&Options::keepalive_timeout)},
      {"grpc.keepalive_permit_without_calls",
       Transport(&Options::keepalive_without_calls, 0, 1)},
      {"verbena.offer_grace_ms", Milliseconds(&Options::offer_grace)},
      {"grpc.max_receive_message_length",
       {-1, kMax,
        [](EndpointOptions& options, int64_t value) {
          options.transport.max_receive_message_bytes =
              std::min(UnlimitedIfNegative(value), internal::kMaxProtobufBytes);
        }}},
      {"grpc.max_send_message_length",
       {-1, kMax,
        [](EndpointOptions& options, int64_t value) {
          options.max_send_message_bytes = UnlimitedIfNegative(value);
        }}},
      {"verbena.max_receive_attachment_bytes",
       {-1, kMax,
        [](EndpointOptions& options, int64_t value) {
          options.transport.max_receive_attachment_bytes =
              UnlimitedIfNegative(value);
        }}},
      {"grpc.max_metadata_size",
       {0, kMax32,
        [](EndpointOptions& options, int64_t value) {
          options.max_metadata_bytes = static_cast<size_t>(value);
        }}},
      {"verbena.handler_threads",
       {1, kMax32,
        [](EndpointOptions& options, int64_t value) {
          options.handler_threads = static_cast<size_t>(value);
        }}},
      {"verbena.handler_queue",
       {0, kMax32,
        [](EndpointOptions& options, int64_t value) {
          options.handler_queue = static_cast<size_t>(value);
        }}},
      {"verbena.spin_us",
       {-1, kMax32,
        [](EndpointOptions& options, int64_t value) {
          options.transport.spin = absl::Microseconds(value);
        }}},
      {"verbena.memory_budget_bytes",
       Transport(&Options::memory_budget_bytes, 0, kMax)},
      {"verbena.receive_budget_bytes",
       Transport(&Options::receive_budget_bytes, 1, kMax)},
      {"verbena.eager_limit_bytes",
       Transport(&Options::eager_limit_bytes, 0, kMax32)},
      {"verbena.pollers",
       Transport(&Options::pollers, 1, Options::kMaxPollers)},
      {"verbena.allow_other_users",
       Transport(&Options::allow_other_users, 0, 1)},
      {"verbena.ack_timeout", Fabric(&FabricOptions::timeout, 1, 31)},
      {"verbena.retry_count", Fabric(&FabricOptions::retry_count, 0, 6)},
      {"verbena.rnr_retry_count",
       Fabric(&FabricOptions::rnr_retry_count, 0, 7)},
      {"verbena.min_rnr_timer", Fabric(&FabricOptions::min_rnr_timer, 1, 31)},
      {"verbena.traffic_class", Fabric(&FabricOptions::traffic_class, 0, 255)},
      {"grpc.dns_min_time_between_resolutions_ms",
       {0, kMax32,
        [](EndpointOptions& options, int64_t value) {
          options.routing.min_time_between_resolutions =
              absl::Milliseconds(value);
        }}},
      {"grpc.enable_retries",
       {0, 1,
        [](EndpointOptions& options, int64_t value) {
          options.routing.retries_asked_for = value != 0;
          options.routing.retries = value != 0;
        }}},
      {"grpc.per_rpc_retry_buffer_size",
       {0, kMax32,
        [](EndpointOptions& options, int64_t value) {
          options.routing.retry_buffer_bytes = static_cast<uint64_t>(value);
        }}},
      {"grpc.use_local_subchannel_pool",
       {0, 1,
        [](EndpointOptions& options, int64_t value) {
          options.transport.share_connection = value == 0;
        }}},
      {"grpc.so_reuseport",
       {0, 1,
        [](EndpointOptions& options, int64_t value) {
          options.reuse_port = value != 0;
        }}},
      {"grpc.max_connection_age_ms",
       LimitInMilliseconds(&Options::max_connection_age, 1)},
      {"grpc.max_connection_age_grace_ms",
       LimitInMilliseconds(&Options::max_connection_age_grace, 0)},
      {"grpc.max_connection_idle_ms",
       LimitInMilliseconds(&Options::max_connection_idle, 1)},
      {"verbena.max_connections",
       Transport(&Options::max_connections, 1, kMax32)},
  };
  return *arguments;
}

using Value = std::variant<int64_t, std::string, void*>;

// What is there where a number should be.
std::string Describe(const Value& value) {
  const std::string* const text = std::get_if<std::string>(&value);
  return text == nullptr ? "a pointer"
                         : absl::StrCat("the string '", *text, "'");
}

absl::Status SetNumber(const std::string& key, const Value& value,
                       const NumberArgument& argument,
                       EndpointOptions& options) {
  const int64_t* const number = std::get_if<int64_t>(&value);
  if (number == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument ", key, " is a number, not ", Describe(value)));
  }
  if (*number < argument.min || *number > argument.max) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument ", key, " = ", *number, " is not in [",
                     argument.min, ", ", argument.max, "]"));
  }
  argument.set(options, *number);
  return absl::OkStatus();
}

absl::Status SetDevice(const Value& value, EndpointOptions& options) {
  const std::string* const device = std::get_if<std::string>(&value);
  if (device == nullptr) {
    return absl::InvalidArgumentError(
        "argument verbena.device is a string: \"auto\", \"soft\" or the name "
        "of a verbs device");
  }
  options.transport.device = *device;
  return absl::OkStatus();
}

// A name that is not known is the routing's to refuse.
absl::Status SetText(const std::string& key, const Value& value,
                     std::string& field) {
  const std::string* const text = std::get_if<std::string>(&value);
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument ", key, " is a string"));
  }
  field = *text;
  return absl::OkStatus();
}

absl::Status SetConnectionSetup(const Value& value, EndpointOptions& options) {
  const std::string* const setup = std::get_if<std::string>(&value);
  if (setup == nullptr || (*setup != "rdma_cm" && *setup != "tcp")) {
    return absl::InvalidArgumentError(
        "argument verbena.connection_setup is \"rdma_cm\" or \"tcp\"");
  }
  options.transport.fabric.set_up_by_tcp = *setup == "tcp";
  return absl::OkStatus();
}

absl::Status SetMtu(const Value& value, EndpointOptions& options) {
  const int64_t* const mtu = std::get_if<int64_t>(&value);
  const bool known =
      mtu != nullptr && (*mtu == 0 || *mtu == 256 || *mtu == 512 ||
                         *mtu == 1024 || *mtu == 2048 || *mtu == 4096);
  if (!known) {
    return absl::InvalidArgumentError(
        "argument verbena.mtu is 256, 512, 1024, 2048 or 4096, or 0 for the "
        "path's");
  }
  options.transport.fabric.mtu_bytes = static_cast<uint32_t>(*mtu);
  return absl::OkStatus();
}

absl::Status SetArgument(const std::string& key, const Value& value,
                         EndpointOptions& options) {
  if (key == "verbena.device") return SetDevice(value, options);
  if (key == "verbena.connection_setup") {
    return SetConnectionSetup(value, options);
  }
  if (key == "grpc.lb_policy_name") {
    return SetText(key, value, options.routing.policy);
  }
  if (key == "grpc.service_config") {
    return SetText(key, value, options.routing.service_config);
  }
  if (key == "grpc.default_authority") {
    return SetText(key, value, options.authority);
  }
  if (key == "grpc.primary_user_agent") {
    return SetText(key, value, options.user_agent_prefix);
  }
  if (key == "grpc.secondary_user_agent") {
    return SetText(key, value, options.user_agent_suffix);
  }
  if (key == "verbena.mtu") return SetMtu(value, options);
  const auto found = NumberArguments().find(key);
  if (found != NumberArguments().end()) {
    return SetNumber(key, value, found->second, options);
  }
  if (LogEnabled(LogLevel::kInfo)) {
    Log(LogLevel::kInfo,
        absl::StrCat("argument ", key, " is not known and has no effect"));
  }
  return absl::OkStatus();
}

}  // namespace

void ChannelArguments::SetResourceQuota(const ResourceQuota& quota) {
  if (quota.bytes().has_value()) {
    // None at all is not to be had: 0 is the default.
    SetInt64("verbena.memory_budget_bytes",
             static_cast<int64_t>(std::max<size_t>(*quota.bytes(), 1)));
  }
  if (quota.max_threads().has_value()) {
    SetInt("verbena.handler_threads", std::max(*quota.max_threads(), 1));
  }
}

void ChannelArguments::SetUserAgentPrefix(const std::string& prefix) {
  constexpr char kName[] = "grpc.primary_user_agent";
  if (prefix.empty()) return;
  const auto before = values_.find(kName);
  const std::string* const old =
      before == values_.end() ? nullptr
                              : std::get_if<std::string>(&before->second);
  SetString(kName, old == nullptr ? prefix : absl::StrCat(prefix, " ", *old));
}

ChannelArguments ChannelArguments::WithAuthority(
    const std::string& authority) const {
  ChannelArguments with = *this;
  with.values_.try_emplace("grpc.default_authority", authority);
  return with;
}

std::optional<void*> ChannelArguments::TakePointer(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  void** const pointer = std::get_if<void*>(&found->second);
  if (pointer == nullptr) return std::nullopt;
  void* const taken = *pointer;
  values_.erase(found);
  return taken;
}

absl::StatusOr<EndpointOptions> ParseArguments(
    const ChannelArguments& arguments) {
  EndpointOptions options;
  options.transport.max_receive_message_bytes = internal::kMaxProtobufBytes;
  options.max_metadata_bytes = internal::kDefaultMaxMetadataBytes;
  options.handler_threads = internal::Executor::kDefaultMaxThreads;
  options.handler_queue = internal::Executor::kDefaultMaxQueued;
  for (const auto& [key, value] : arguments.values_) {
    absl::Status status = SetArgument(key, value, options);
    if (!status.ok()) return status;
  }
  return options;
}

}  // namespace rpc
