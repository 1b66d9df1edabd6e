#include "tools/rdma_info/json_report.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/rdma_info/address_reason.h"
#include "tools/rdma_info/capabilities.h"
#include "tools/rdma_info/device_names.h"
#include "tools/rdma_info/gid.h"

namespace rdma_info {
namespace {

// Keeps the order in which fields are written.
using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json();
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json ErrorOrNull(const absl::Status& status) {
  return status.ok() ? Json() : Json(std::string(status.message()));
}

std::string NameOf(Access access) {
  switch (access) {
    case Access::kGranted:
      return "granted";
    case Access::kDenied:
      return "denied";
    case Access::kMissing:
      break;
  }
  return "missing";
}

std::string NameOf(ForkSafety fork) {
  switch (fork) {
    case ForkSafety::kUnneeded:
      return "unneeded";
    case ForkSafety::kEnabled:
      return "enabled";
    case ForkSafety::kFailed:
      break;
  }
  return "failed";
}

std::string ProviderName(bool is_software) {
  return is_software ? "software" : "hardware";
}

Json ToJson(const System& system) {
  Json limits = Json::array();
  for (const CgroupLimit& limit : system.cgroup_limits) {
    limits.push_back({{"device", limit.device},
                      {"hca_handle", OrNull(limit.contexts)},
                      {"hca_object", OrNull(limit.objects)}});
  }
  return {{"kernel", system.kernel},
          {"memory_bytes", system.memory_bytes},
          {"memlock_bytes", OrNull(system.memlock_bytes)},
          {"memlock_hard_bytes", OrNull(system.memlock_hard_bytes)},
          {"ignores_memlock", system.ignores_memlock},
          {"ib_uverbs", system.has_uverbs},
          {"rdma_ucm", system.has_rdma_ucm},
          {"rdma_cm_access", NameOf(system.rdma_cm)},
          {"fork", NameOf(system.fork)},
          {"huge_pages", system.huge_pages},
          {"cgroup_limits", limits}};
}

Json ToJson(const Port& port) {
  Json gids = Json::array();
  for (const Gid& gid : port.gids) {
    gids.push_back({{"index", gid.index},
                    {"gid", TextOf(gid)},
                    {"type", NameOf(gid.type)},
                    {"netdev", gid.netdev},
                    {"ip_address", TextOrNull(IpAddressOf(gid))}});
  }
  const auto mtu = [](int bytes) { return bytes == 0 ? Json() : Json(bytes); };
  return {{"number", port.number},
          {"state", PortStateName(port.state)},
          {"physical_state", port.physical_state},
          {"link_layer", NameOf(port.link_layer)},
          {"rate", port.rate},
          {"active_mtu_bytes", mtu(port.active_mtu_bytes)},
          {"max_mtu_bytes", mtu(port.max_mtu_bytes)},
          {"sm_lid", port.sm_lid},
          {"netdevs", port.netdevs},
          {"gids", gids}};
}

Json CapabilitiesToJson(const Device& device) {
  Json capabilities = Json::object();
  if (!device.opened.ok()) return capabilities;
  for (const Capability& each : CapabilitiesOf(device)) {
    const auto value = [&](uint64_t number) {
      return each.is_flag ? Json(number != 0) : Json(number);
    };
    capabilities[std::string(each.name)] = {
        {"device", value(each.device)},
        {"transport",
         each.transport.has_value() ? value(*each.transport) : Json()}};
  }
  return capabilities;
}

Json ToJson(const Device& device) {
  Json ports = Json::array();
  for (const Port& port : device.ports) ports.push_back(ToJson(port));
  const bool hardware = !device.is_software;
  return {{"name", device.name},
          {"provider", ProviderName(device.is_software)},
          {"node", device.node},
          {"access", NameOf(device.access)},
          {"opened", device.opened.ok()},
          {"error", ErrorOrNull(device.opened)},
          {"driver", device.driver},
          {"vendor",
           hardware ? VendorName(device.attributes.vendor_id, device.driver)
                    : "Verbena"},
          {"vendor_id", device.attributes.vendor_id},
          {"vendor_part_id", device.attributes.vendor_part_id},
          {"firmware", device.firmware},
          {"node_type", device.node_type},
          {"ports", ports},
          {"capabilities", CapabilitiesToJson(device)}};
}

Json ToJson(const Netdev& netdev) {
  return {{"name", netdev.name},
          {"mtu_bytes", netdev.mtu_bytes},
          {"up", netdev.is_up},
          {"carrier", netdev.has_carrier},
          {"addresses", netdev.addresses}};
}

Json AddressToJson(const AddressReport& report, const Machine& machine) {
  Json choices = Json::array();
  for (const AddressChoice& choice : report.choices) {
    const bool connects = choice.use == rdma::AddressUse::kConnect;
    choices.push_back(
        {{"address", choice.address.ToString()},
         {"use", connects ? "connect" : "listen"},
         {"provider", ProviderName(choice.is_software)},
         {"device", choice.device.ok() ? Json(*choice.device) : Json()},
         {"reason", ReasonOf(choice, machine)}});
  }
  return {{"text", report.text},
          {"error", ErrorOrNull(report.resolved)},
          {"choices", choices}};
}

Json ToJson(const Finding& finding) {
  return {{"severity", NameOf(finding.severity)},
          {"id", std::string(finding.id)},
          {"subject", finding.subject},
          {"what", finding.what},
          {"why", finding.why},
          {"fix", finding.fix}};
}

template <typename T>
Json AllToJson(const std::vector<T>& items) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(ToJson(item));
  return array;
}

}  // namespace

std::string JsonReport(const Machine& machine, const Diagnosis& diagnosis) {
  Json report = {{"exit_status", diagnosis.HasErrors() ? 1 : 0},
                 {"hardware", NameOf(diagnosis.hardware)},
                 {"usable_devices", diagnosis.usable_devices},
                 {"system", ToJson(machine.system)},
                 {"devices", AllToJson(machine.devices)},
                 {"netdevs", AllToJson(machine.netdevs)},
                 {"address", machine.address.has_value()
                                 ? AddressToJson(*machine.address, machine)
                                 : Json()},
                 {"findings", AllToJson(diagnosis.findings)}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rdma_info
