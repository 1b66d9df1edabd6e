#include "tools/rdma_info/diagnose.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "tools/rdma_info/checks.h"

namespace rdma_info {
namespace {

Finding NoDevice(bool is_required) {
  return {
      .severity = is_required ? Severity::kError : Severity::kNote,
      .id = "no_device",
      .what = "this machine has no RDMA device",
      .why =
          "processes of this host are connected by the software device "
          "soft0, which needs none; other hosts cannot be reached",
      .fix = {"lspci | grep -iE 'mellanox|infiniband|ethernet'  # is there a "
              "NIC that can do RDMA? Then load its driver (mlx5_ib, irdma, "
              "bnxt_re, ...)",
              "sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe "
              "netdev NETDEV  # soft-RoCE, on any Ethernet interface"}};
}

// One for all of them: a test machine has several.
void NoteSoftRoce(const Machine& machine, std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Device& device : machine.devices) {
    if (device.driver == "rdma_rxe") names.push_back(device.name);
  }
  if (names.empty()) return;
  findings.push_back(
      {.severity = Severity::kNote,
       .id = "soft_roce",
       .subject = absl::StrJoin(names, ", "),
       .what = "this is soft-RoCE: the kernel does what a NIC would do",
       .why = "good for tests, and for reaching hosts with NICs; within one "
              "host Verbena's own soft0 is much faster. Its memory windows do "
              "not survive lost packets and are not used, so peers can read "
              "all memory of messages: connect to trusted peers only"});
}

bool IsError(const Finding& finding) {
  return finding.severity == Severity::kError;
}

bool IsUsable(const Device& device, const Machine& machine,
              const std::vector<Finding>& findings) {
  const bool broken =
      std::any_of(findings.begin(), findings.end(), [&](const Finding& each) {
        return IsError(each) && each.subject == device.name;
      });
  return device.opened.ok() && !broken &&
         std::any_of(device.ports.begin(), device.ports.end(),
                     [&](const Port& port) {
                       return port.state == IBV_PORT_ACTIVE &&
                              HasIpAddress(device, port, machine);
                     });
}

void Append(std::vector<Finding>& all, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

// What keeps one device or port from being used is no error of the machine
// while another one can be used.
std::vector<Finding> CheckDevices(const Machine& machine,
                                  std::vector<std::string>& usable_devices) {
  std::vector<Finding> findings;
  for (const Device& device : machine.devices) {
    if (device.is_software) continue;
    std::vector<Finding> of_device = CheckDevice(device, machine);
    if (IsUsable(device, machine, of_device)) {
      usable_devices.push_back(device.name);
    }
    Append(findings, std::move(of_device));
  }
  if (usable_devices.empty()) return findings;
  for (Finding& finding : findings) {
    if (IsError(finding)) finding.severity = Severity::kWarning;
  }
  return findings;
}

void DiagnoseHardware(const Machine& machine, bool is_required,
                      Diagnosis& diagnosis) {
  const bool has_devices =
      std::any_of(machine.devices.begin(), machine.devices.end(),
                  [](const Device& device) { return !device.is_software; });
  if (!has_devices) {
    // Nothing else stands in the way of a device that is not there.
    diagnosis.findings = {NoDevice(is_required)};
    return;
  }
  diagnosis.findings = CheckSystem(machine.system);
  Append(diagnosis.findings, CheckDevices(machine, diagnosis.usable_devices));
  NoteSoftRoce(machine, diagnosis.findings);
  diagnosis.hardware =
      diagnosis.HasErrors() ? Hardware::kUnusable : Hardware::kReady;
  if (diagnosis.HasErrors()) diagnosis.usable_devices.clear();
}

}  // namespace

std::string NameOf(Hardware hardware) {
  switch (hardware) {
    case Hardware::kNone:
      return "none";
    case Hardware::kUnusable:
      return "unusable";
    case Hardware::kReady:
      break;
  }
  return "ready";
}

bool Diagnosis::HasErrors() const {
  return std::any_of(findings.begin(), findings.end(), IsError);
}

Diagnosis Diagnose(const Machine& machine, const DiagnoseOptions& options) {
  Diagnosis diagnosis;
  DiagnoseHardware(machine, options.require_hardware, diagnosis);
  if (machine.address.has_value()) {
    Append(diagnosis.findings,
           CheckAddress(*machine.address, options.require_hardware));
  }
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return a.severity < b.severity;
                   });
  return diagnosis;
}

}  // namespace rdma_info
