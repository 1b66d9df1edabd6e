#include "tools/rdma_info/text_report.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/rdma_info/address_reason.h"
#include "tools/rdma_info/capabilities.h"
#include "tools/rdma_info/device_names.h"
#include "tools/rdma_info/gid.h"

namespace rdma_info {
namespace {

constexpr size_t kLineWidth = 80;

// `text` in lines of at most kLineWidth, the first after `first`, the others
// below its end.
std::string Wrapped(const std::string& first, const std::string& text) {
  std::string result = first;
  size_t column = first.size();
  bool line_start = true;
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line_start && column + 1 + word.size() > kLineWidth) {
      absl::StrAppend(&result, "\n", std::string(first.size(), ' '));
      column = first.size();
      line_start = true;
    }
    if (!line_start) {
      absl::StrAppend(&result, " ");
      ++column;
    }
    absl::StrAppend(&result, word);
    column += word.size();
    line_start = false;
  }
  return result + "\n";
}

// --- Devices -----------------------------------------------------------------

std::string NumberText(uint64_t value) {
  return value == UINT64_MAX ? "no limit" : absl::StrCat(value);
}

std::string ValueText(const Capability& capability, uint64_t value) {
  if (capability.is_flag) return value != 0 ? "yes" : "no";
  return NumberText(value);
}

std::string CapabilityLines(const Device& device) {
  std::string text = absl::StrFormat("  %-20s %10s %10s\n", "capability",
                                     "device", "transport");
  for (const Capability& each : CapabilitiesOf(device)) {
    const std::string taken =
        each.transport.has_value() ? ValueText(each, *each.transport) : "-";
    absl::StrAppendFormat(&text, "  %-20s %10s %10s  %s\n",
                          std::string(each.name), ValueText(each, each.device),
                          taken, std::string(each.meaning));
  }
  return text;
}

// The lines of `devices[index]`, or that they are those of one above: machines
// have many devices of a kind.
std::string CapabilityLinesOnce(const std::vector<Device>& devices,
                                size_t index) {
  if (!devices[index].opened.ok()) return "";
  std::string lines = CapabilityLines(devices[index]);
  for (size_t i = 0; i < index; ++i) {
    if (devices[i].opened.ok() && CapabilityLines(devices[i]) == lines) {
      return absl::StrCat("  capabilities as of ", devices[i].name, "\n");
    }
  }
  return lines;
}

std::string GidLine(const Gid& gid) {
  std::vector<std::string> parts = {
      absl::StrFormat("    GID %-3d %s", gid.index, TextOf(gid)),
      NameOf(gid.type)};
  if (!gid.netdev.empty()) parts.push_back(gid.netdev);
  const std::string address = IpAddressOf(gid);
  if (!address.empty()) parts.push_back(absl::StrCat("address ", address));
  return absl::StrJoin(parts, ", ") + "\n";
}

std::string PortLines(const Port& port) {
  std::vector<std::string> parts = {
      absl::StrCat(PortStateName(port.state), " (", port.physical_state, ")"),
      NameOf(port.link_layer), port.rate};
  if (port.active_mtu_bytes != 0) {
    parts.push_back(absl::StrCat("MTU ", port.active_mtu_bytes, " of ",
                                 port.max_mtu_bytes));
  }
  if (!port.netdevs.empty()) parts.push_back(absl::StrJoin(port.netdevs, " "));
  std::string text = absl::StrCat("  port ", port.number, ": ",
                                  absl::StrJoin(parts, ", "), "\n");
  for (const Gid& gid : port.gids) absl::StrAppend(&text, GidLine(gid));
  return text;
}

std::string DeviceLines(const Device& device) {
  if (device.is_software) {
    return absl::StrCat(
        device.name,
        ": Verbena's software device, between the processes of this host\n");
  }
  std::vector<std::string> parts = {
      VendorName(device.attributes.vendor_id, device.driver)};
  if (!device.driver.empty()) {
    parts.push_back(absl::StrCat("driver ", device.driver));
  }
  if (!device.firmware.empty()) {
    parts.push_back(absl::StrCat("firmware ", device.firmware));
  }
  parts.push_back(NodeTypeText(device.node_type));
  std::string text =
      absl::StrCat(device.name, ": ", absl::StrJoin(parts, ", "), "\n");
  if (!device.opened.ok()) {
    absl::StrAppend(
        &text, Wrapped("  not opened: ", std::string(device.opened.message())));
  }
  for (const Port& port : device.ports) absl::StrAppend(&text, PortLines(port));
  return text;
}

// --- The address -------------------------------------------------------------

std::string ChoiceLines(const AddressChoice& choice, const Machine& machine) {
  const std::string kind = choice.is_software ? "software" : "hardware";
  const std::string device = choice.device.ok() ? *choice.device : "none";
  const std::string first = absl::StrFormat("    %-8s  %-8s  ", kind, device);
  return Wrapped(first, ReasonOf(choice, machine));
}

std::string AddressLines(const AddressReport& report, const Machine& machine) {
  std::string text = absl::StrCat("Address ", report.text, "\n");
  std::string heading;
  for (const AddressChoice& choice : report.choices) {
    const bool connects = choice.use == rdma::AddressUse::kConnect;
    const std::string next =
        absl::StrCat(connects ? "  to connect to " : "  to listen on ",
                     choice.address.ToString(), "\n");
    if (next != heading) absl::StrAppend(&text, next);
    heading = next;
    absl::StrAppend(&text, ChoiceLines(choice, machine));
  }
  return text + "\n";
}

// --- Findings and the verdict ------------------------------------------------

std::string FindingLines(const Finding& finding) {
  const std::string subject =
      finding.subject.empty() ? "" : absl::StrCat(finding.subject, ": ");
  std::string text = Wrapped(
      absl::StrCat(NameOf(finding.severity), ": "),
      absl::StrCat(subject, finding.what, " [", std::string(finding.id), "]"));
  absl::StrAppend(&text, Wrapped("  why: ", finding.why));
  // Never wrapped: they are to be copied.
  for (const std::string& command : finding.fix) {
    absl::StrAppend(&text, "  do:  ", command, "\n");
  }
  return text + "\n";
}

std::string Verdict(const Diagnosis& diagnosis) {
  switch (diagnosis.hardware) {
    case Hardware::kNone:
      return "No RDMA hardware. The software device soft0 is ready: it "
             "connects "
             "the processes of this host.\n";
    case Hardware::kUnusable:
      return "RDMA hardware cannot be used until the errors above are mended. "
             "The software device soft0 is ready.\n";
    case Hardware::kReady:
      break;
  }
  return absl::StrCat(
      "RDMA hardware is ready: ", absl::StrJoin(diagnosis.usable_devices, ", "),
      ". So is the software device soft0.\n");
}

}  // namespace

std::string TextReport(const Machine& machine, const Diagnosis& diagnosis) {
  std::string text;
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    absl::StrAppend(&text, DeviceLines(machine.devices[i]),
                    CapabilityLinesOnce(machine.devices, i), "\n");
  }
  if (machine.address.has_value()) {
    absl::StrAppend(&text, AddressLines(*machine.address, machine));
  }
  for (const Finding& finding : diagnosis.findings) {
    absl::StrAppend(&text, FindingLines(finding));
  }
  return text + Wrapped("", Verdict(diagnosis));
}

}  // namespace rdma_info
