#include "benchmarks/scale_parts.h"

#include "absl/strings/str_cat.h"

namespace benchmarks {
namespace {

std::optional<int> CpuOf(const ScaleSettings& settings, size_t side) {
  if (settings.cpus.empty()) return std::nullopt;
  return settings.cpus[side];
}

std::vector<std::string> FlagsFor(const ScaleSettings& settings,
                                  const std::string& role) {
  std::vector<std::string> flags = settings.flags;
  flags.push_back(absl::StrCat("--role=", role));
  return flags;
}

}  // namespace

absl::StatusOr<ServerProcess> StartScaleServer(const ScaleSettings& settings,
                                               int pollers) {
  std::vector<std::string> flags = FlagsFor(settings, "server");
  flags.push_back(absl::StrCat("--pollers=", pollers));
  return ServerProcess::Start(settings.host, flags, CpuOf(settings, 1));
}

absl::StatusOr<OtherClient> StartOtherClient(const ScaleSettings& settings,
                                             const std::string& address) {
  return OtherClient::Start(address, FlagsFor(settings, "client"),
                            CpuOf(settings, 0));
}

absl::StatusOr<Measurement> MeasureRoundTrips(
    const ScaleSettings& settings,
    const std::shared_ptr<rpc::Channel>& channel) {
  absl::StatusOr<Measurement> result = RunWorkload({.mode = Mode::kLatency,
                                                    .payload_bytes = 64,
                                                    .warm_up = settings.warm_up,
                                                    .time = settings.time},
                                                   channel);
  if (result.ok() && result->errors > 0) {
    return absl::UnavailableError(absl::StrCat(
        result->errors, " calls failed, such as: ", result->first_error));
  }
  return result;
}

}  // namespace benchmarks
