#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/rdma_info/checks.h"
#include "tools/rdma_info/device_names.h"
#include "tools/rdma_info/gid.h"

namespace rdma_info {
namespace {

// What Ethernet's usual 1500 bytes give. Less is worth a warning.
constexpr int kUsualRoceMtuBytes = 1024;

std::string SubjectOf(const Device& device, const Port& port) {
  return absl::StrCat(device.name, "/", port.number);
}

const Netdev* FindNetdev(const Machine& machine, const std::string& name) {
  for (const Netdev& netdev : machine.netdevs) {
    if (netdev.name == name) return &netdev;
  }
  return nullptr;
}

// The first network interface of the port, as it is in this network namespace;
// or null.
const Netdev* NetdevOf(const Port& port, const Machine& machine) {
  for (const std::string& name : port.netdevs) {
    if (const Netdev* const netdev = FindNetdev(machine, name)) return netdev;
  }
  return nullptr;
}

bool IsInfiniband(const Port& port) {
  return port.link_layer == LinkLayer::kInfiniband;
}

// --- The link ----------------------------------------------------------------

Finding NoSubnetManager(const Device& device, const Port& port) {
  return {
      .severity = Severity::kError,
      .id = "no_subnet_manager",
      .subject = SubjectOf(device, port),
      .what = absl::StrCat("the port is in state ", PortStateName(port.state),
                           ": its cable is fine, but no subnet manager has "
                           "set it up"),
      .why =
          "InfiniBand needs one for each fabric; many switches have one, "
          "else any host runs it",
      .fix = {"sudo apt-get install opensm && sudo systemctl start opensm  "
              "# on one host"}};
}

Finding PortDown(const Device& device, const Port& port, const Netdev* netdev) {
  Finding finding = {
      .severity = Severity::kError,
      .id = "port_down",
      .subject = SubjectOf(device, port),
      .what = absl::StrCat("the port is ", PortStateName(port.state),
                           " (physically ", port.physical_state, ")"),
      .why = "nothing is sent or received through it"};
  const std::string show =
      absl::StrCat("rdma link show ", device.name, "/", port.number);
  if (netdev == nullptr) {
    finding.fix = {absl::StrCat(
        show, "  # then check cable and switch: nothing answers there")};
  } else if (!netdev->is_up) {
    absl::StrAppend(&finding.what, ": its network interface ", netdev->name,
                    " is switched off");
    finding.fix = {absl::StrCat("sudo ip link set dev ", netdev->name, " up")};
  } else if (!netdev->has_carrier) {
    absl::StrAppend(&finding.what, ": ", netdev->name,
                    " has no link to the other end");
    finding.fix = {absl::StrCat("ip link show dev ", netdev->name,
                                "  # then check the cable, and that the other "
                                "end is on")};
  } else {
    absl::StrAppend(&finding.what, ", though its network interface ",
                    netdev->name, " is up");
    finding.fix = {show, "sudo dmesg | tail  # what the driver says"};
  }
  return finding;
}

Finding LinkFinding(const Device& device, const Port& port,
                    const Machine& machine) {
  const bool awaits_manager =
      port.state == IBV_PORT_INIT || port.state == IBV_PORT_ARMED;
  if (IsInfiniband(port) && awaits_manager) {
    return NoSubnetManager(device, port);
  }
  // IPoIB's interface follows the port, not the other way round.
  return PortDown(device, port,
                  IsInfiniband(port) ? nullptr : NetdevOf(port, machine));
}

// --- Addresses ---------------------------------------------------------------

Finding NoIpAddress(const Device& device, const Port& port,
                    const Machine& machine) {
  const Netdev* const netdev = NetdevOf(port, machine);
  Finding finding = {
      .severity = Severity::kError,
      .id = "no_ip_address",
      .subject = SubjectOf(device, port),
      .why =
          "connections find a device by the IP address of its network "
          "interface: no rdma:// address leads here"};
  if (netdev == nullptr && IsInfiniband(port)) {
    finding.what = "the port has no network interface (IPoIB)";
    finding.fix = {"sudo modprobe ib_ipoib",
                   "ip link  # shows ib0 or the like; then give it an address: "
                   "sudo ip addr add ADDRESS/24 dev ib0"};
  } else if (netdev == nullptr) {
    finding.what =
        "the port's network interface is not in this network namespace";
    finding.fix = {"docker run --network=host ...  # in a container",
                   "rdma link  # names the interface"};
  } else if (!netdev->addresses.empty()) {
    finding.what = absl::StrCat("the network interface ", netdev->name,
                                " has the address ", netdev->addresses.front(),
                                ", but the port has no GID of it");
    finding.fix = {absl::StrCat("sudo ip link set dev ", netdev->name,
                                " down && sudo ip link set dev ", netdev->name,
                                " up  # makes the GIDs anew")};
  } else {
    finding.what = absl::StrCat("the port's network interface ", netdev->name,
                                " has no IP address");
    finding.fix = {
        absl::StrCat("sudo ip addr add ADDRESS/24 dev ", netdev->name,
                     "  # ADDRESS: a free one of your network"),
        absl::StrCat("sudo ip link set dev ", netdev->name, " up")};
  }
  return finding;
}

void CheckRoceGids(const Device& device, const Port& port,
                   std::vector<Finding>& findings) {
  bool any = false;
  bool v2 = false;
  bool ipv4 = false;
  for (const Gid& gid : port.gids) {
    any = any || IsRoce(gid.type);
    v2 = v2 || gid.type == GidType::kRoceV2;
    ipv4 = ipv4 || IsIpv4(gid);
  }
  if (any && !v2) {
    findings.push_back(
        {.severity = Severity::kWarning,
         .id = "no_roce_v2_gid",
         .subject = SubjectOf(device, port),
         .what = "the port has GIDs of RoCE v1 only",
         .why = "RoCE v1 reaches hosts of the same Ethernet segment, and no "
                "host that speaks RoCE v2 only. The kernel makes GIDs of v2 "
                "wherever "
                "device and firmware have it: see their vendor's manual"});
  }
  if (!ipv4) {
    findings.push_back(
        {.severity = Severity::kNote,
         .id = "no_ipv4_gid",
         .subject = SubjectOf(device, port),
         .what = "the port has an IPv6 address, but no IPv4 one",
         .why = "IPv4 addresses are not reached through it",
         .fix = {absl::StrCat(
             "sudo ip addr add ADDRESS/24 dev ",
             port.netdevs.empty() ? "NETDEV" : port.netdevs.front(),
             "  # if they are to be")}});
  }
}

// --- MTU ---------------------------------------------------------------------

void CheckMtu(const Device& device, const Port& port, const Netdev* netdev,
              std::vector<Finding>& findings) {
  if (port.active_mtu_bytes == 0 ||
      port.active_mtu_bytes >= port.max_mtu_bytes || netdev == nullptr) {
    return;
  }
  const int wanted = port.max_mtu_bytes + kRoceHeaderBytes;
  if (netdev->mtu_bytes >= wanted) return;  // the device has its own reasons
  const bool small = port.active_mtu_bytes < kUsualRoceMtuBytes;
  findings.push_back(
      {.severity = small ? Severity::kWarning : Severity::kNote,
       .id = "mtu_small",
       .subject = SubjectOf(device, port),
       .what = absl::StrCat("RoCE packets carry ", port.active_mtu_bytes,
                            " bytes where the device could do ",
                            port.max_mtu_bytes, ": the MTU of ", netdev->name,
                            " is ", netdev->mtu_bytes),
       .why = "large messages take more packets; both hosts and the switches "
              "between them must have room for larger ones",
       .fix = {absl::StrCat("sudo ip link set dev ", netdev->name, " mtu ",
                            wanted, "  # or 9000, on every host")}});
}

}  // namespace

bool HasIpAddress(const Device& device, const Port& port,
                  const Machine& machine) {
  const bool is_roce =
      port.link_layer == LinkLayer::kEthernet && device.node_type != "RNIC";
  if (is_roce) {
    return std::any_of(port.gids.begin(), port.gids.end(), [](const Gid& gid) {
      return !IpAddressOf(gid).empty();
    });
  }
  return std::any_of(port.netdevs.begin(), port.netdevs.end(),
                     [&](const std::string& name) {
                       const Netdev* const netdev = FindNetdev(machine, name);
                       return netdev != nullptr && !netdev->addresses.empty();
                     });
}

std::vector<Finding> CheckPort(const Device& device, const Port& port,
                               const Machine& machine) {
  std::vector<Finding> findings;
  const bool is_active = port.state == IBV_PORT_ACTIVE;
  if (!is_active) findings.push_back(LinkFinding(device, port, machine));
  if (!HasIpAddress(device, port, machine)) {
    findings.push_back(NoIpAddress(device, port, machine));
    return findings;
  }
  if (port.link_layer != LinkLayer::kEthernet || device.node_type == "RNIC") {
    return findings;
  }
  CheckRoceGids(device, port, findings);
  if (is_active) CheckMtu(device, port, NetdevOf(port, machine), findings);
  return findings;
}

}  // namespace rdma_info
