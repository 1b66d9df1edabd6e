#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma_transport/device_use.h"
#include "tools/rdma_info/checks.h"

namespace rdma_info {
namespace {

// The reason why a device of the kernel cannot be opened; REQUIRES: it cannot.
Finding CannotOpen(const Device& device) {
  Finding finding = {.severity = Severity::kError, .subject = device.name};
  if (!device.node.empty() && device.access == Access::kMissing) {
    finding.id = "device_node_missing";
    finding.what = absl::StrCat("there is no ", device.node,
                                ", though the kernel has the device");
    finding.why =
        "the device is opened through it; containers see it only when it is "
        "passed in";
    finding.fix = {"docker run --device=/dev/infiniband ...  # in a container",
                   "sudo udevadm trigger  # elsewhere"};
  } else if (!device.node.empty() && device.access == Access::kDenied) {
    finding.id = "device_access_denied";
    finding.what = absl::StrCat("this user may not open ", device.node);
    finding.why = "the device is opened through it";
    finding.fix = {
        absl::StrCat("sudo chmod 0666 ", device.node,
                     "  # until the next start"),
        "sudo apt-get install rdma-core && sudo udevadm trigger  # lasting"};
  } else if (!device.is_listed) {
    finding.id = "user_driver_missing";
    finding.what = "libibverbs does not know the device";
    finding.why =
        "the kernel's half of the driver is there, the half that runs in "
        "programs is not, or is older than the device";
    finding.fix = {"sudo apt-get install ibverbs-providers"};
  } else {
    finding.id = "device_open_failed";
    finding.what = "the device cannot be opened";
    finding.why = std::string(device.opened.message());
    finding.fix = {absl::StrCat("ibv_devinfo -d ", device.name),
                   "sudo dmesg | tail  # what the driver says"};
  }
  return finding;
}

// What the transport cannot do without, or would rather not.
void CheckCapabilities(const Device& device, std::vector<Finding>& findings) {
  const ibv_device_attr& has = device.attributes;
  if (has.max_srq <= 0 || has.max_srq_wr <= 0) {
    findings.push_back({.severity = Severity::kError,
                        .id = "no_shared_receive_queue",
                        .subject = device.name,
                        .what = "the device has no shared receive queues",
                        .why = "the transport receives through one, so that "
                               "memory does not grow with connections: use "
                               "another device"});
  }
  if (has.max_qp_rd_atom <= 0 || has.max_qp_init_rd_atom <= 0) {
    findings.push_back({.severity = Severity::kError,
                        .id = "no_rdma_read",
                        .subject = device.name,
                        .what = "the device has no RDMA READ",
                        .why = "large messages are moved by it: use another "
                               "device"});
  }
  if (!rdma::HasType2Windows(has)) {
    findings.push_back({.severity = Severity::kWarning,
                        .id = "no_memory_windows",
                        .subject = device.name,
                        .what = "the device has no type 2 memory windows",
                        .why = "peers can then read all memory of messages, "
                               "not only what is offered to them: connect to "
                               "trusted peers only"});
  }
}

void CheckCgroup(const Device& device, const CgroupLimit& limit,
                 std::vector<Finding>& findings) {
  const bool blocks =
      limit.contexts == uint64_t{0} ||
      limit.objects.value_or(kLeastCgroupObjects) < kLeastCgroupObjects;
  const auto text = [](const std::optional<uint64_t>& value) {
    return value.has_value() ? absl::StrCat(*value) : std::string("max");
  };
  findings.push_back(
      {.severity = blocks ? Severity::kError : Severity::kWarning,
       .id = blocks ? "cgroup_too_low" : "cgroup_limited",
       .subject = device.name,
       .what = absl::StrCat(
           "the cgroup of this process limits the device: hca_handle=",
           text(limit.contexts), " hca_object=", text(limit.objects)),
       .why = "each process that uses the device takes a handle, and each "
              "connection, queue and memory region an object; what is beyond "
              "fails",
       .fix = {absl::StrCat("echo '", device.name,
                            " hca_handle=max hca_object=max' | sudo tee "
                            "/sys/fs/cgroup/GROUP/rdma.max  # GROUP is in "
                            "/proc/self/cgroup, and its parents")}});
}

}  // namespace

std::vector<Finding> CheckDevice(const Device& device, const Machine& machine) {
  std::vector<Finding> findings;
  if (device.opened.ok()) {
    CheckCapabilities(device, findings);
  } else if (machine.system.has_uverbs) {  // without, CheckSystem says so
    findings.push_back(CannotOpen(device));
  }
  for (const CgroupLimit& limit : machine.system.cgroup_limits) {
    if (limit.device == device.name) CheckCgroup(device, limit, findings);
  }
  if (device.ports.empty()) {
    findings.push_back({.severity = Severity::kError,
                        .id = "no_port",
                        .subject = device.name,
                        .what = "the kernel shows no port of the device",
                        .why = "connections are made through ports",
                        .fix = {"sudo dmesg | tail  # what the driver says"}});
  }
  for (const Port& port : device.ports) {
    for (const Finding& finding : CheckPort(device, port, machine)) {
      findings.push_back(finding);
    }
  }
  return findings;
}

}  // namespace rdma_info
