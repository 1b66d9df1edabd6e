#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/rdma_info/address_reason.h"
#include "tools/rdma_info/checks.h"

namespace rdma_info {
namespace {

bool IsChosen(const AddressReport& report, bool is_software) {
  return std::any_of(report.choices.begin(), report.choices.end(),
                     [&](const AddressChoice& choice) {
                       return choice.is_software == is_software &&
                              choice.device.ok();
                     });
}

// What the RDMA devices' provider says: of connecting, which comes first, as
// who asks for an address of another host means that.
std::string WhyNoHardware(const AddressReport& report) {
  for (const AddressChoice& choice : report.choices) {
    if (!choice.is_software && !choice.device.ok()) {
      return std::string(choice.device.status().message());
    }
  }
  return "";
}

}  // namespace

std::vector<Finding> CheckAddress(const AddressReport& report,
                                  bool require_hardware) {
  if (!report.resolved.ok()) {
    return {{.severity = Severity::kError,
             .id = "address_unknown",
             .subject = report.text,
             .what = "the host's name has no address",
             .why = std::string(report.resolved.message()),
             .fix = {"getent hosts NAME  # asks as programs do; names are in "
                     "/etc/hosts and DNS"}}};
  }
  if (IsChosen(report, /*is_software=*/false)) return {};
  if (IsChosen(report, /*is_software=*/true) && !require_hardware) {
    return {{.severity = Severity::kNote,
             .id = "address_software_only",
             .subject = report.text,
             .what = "only the software device answers for this address",
             .why = WhyNoHardware(report)}};
  }
  return {{.severity = Severity::kError,
           .id = "address_unreachable",
           .subject = report.text,
           .what = IsChosen(report, /*is_software=*/true)
                       ? "no RDMA hardware leads to this address"
                       : "no device leads to this address, nor has it",
           .why = WhyNoHardware(report),
           .fix = {absl::StrCat("ip route get ",
                                HostOf(report.choices.front().address),
                                "  # which interface the way leaves by"),
                   "rdma link  # which interfaces have an RDMA device"}}};
}

}  // namespace rdma_info
