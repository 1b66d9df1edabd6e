#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/rdma_info/byte_text.h"
#include "tools/rdma_info/checks.h"

namespace rdma_info {
namespace {

// Of rdma-core, which opens the files of /dev/infiniband to everybody.
constexpr char kUdevRules[] =
    "sudo apt-get install rdma-core && sudo udevadm trigger  # lasting";

Finding NoVerbsModule() {
  return {.severity = Severity::kError,
          .id = "ib_uverbs_missing",
          .what = "the kernel module ib_uverbs is not loaded",
          .why =
              "without it no program can open an RDMA device: libibverbs "
              "lists none",
          .fix = {"sudo modprobe ib_uverbs",
                  "echo ib_uverbs | sudo tee /etc/modules-load.d/rdma.conf  # "
                  "at every start"}};
}

Finding NoConnectionManagerModule() {
  return {.severity = Severity::kError,
          .id = "rdma_ucm_missing",
          .what = "the kernel module rdma_ucm is not loaded",
          .why =
              "without it no connection can be set up by IP address "
              "(librdmacm)",
          .fix = {"sudo modprobe rdma_ucm",
                  "echo rdma_ucm | sudo tee -a /etc/modules-load.d/rdma.conf  "
                  "# at every start"}};
}

void CheckConnectionManager(const System& system,
                            std::vector<Finding>& findings) {
  if (!system.has_rdma_ucm) {
    findings.push_back(NoConnectionManagerModule());
  } else if (system.rdma_cm == Access::kMissing) {
    findings.push_back(
        {.severity = Severity::kError,
         .id = "rdma_cm_node_missing",
         .what = "there is no /dev/infiniband/rdma_cm, though the kernel has "
                 "its module",
         .why = "connections are set up through it; containers see it only "
                "when it is passed in",
         .fix = {"docker run --device=/dev/infiniband ...  # in a container",
                 "sudo udevadm trigger  # elsewhere"}});
  } else if (system.rdma_cm == Access::kDenied) {
    findings.push_back(
        {.severity = Severity::kError,
         .id = "rdma_cm_access_denied",
         .what = "this user may not open /dev/infiniband/rdma_cm",
         .why = "connections are set up through it",
         .fix = {"sudo chmod 0666 /dev/infiniband/rdma_cm  # until the next "
                 "start",
                 kUdevRules}});
  }
}

// The ways to raise the limit, the quickest first.
std::vector<std::string> RaiseMemlock(const System& system) {
  std::vector<std::string> fix;
  if (!system.memlock_hard_bytes.has_value()) {
    fix.push_back("ulimit -l unlimited  # this shell and what it starts");
  }
  fix.push_back(
      "echo '* - memlock unlimited' | sudo tee "
      "/etc/security/limits.d/rdma.conf  # from the next login on");
  fix.push_back("LimitMEMLOCK=infinity  # under [Service], of a systemd unit");
  fix.push_back("docker run --ulimit memlock=-1 ...  # of a container");
  return fix;
}

void CheckMemlock(const System& system, std::vector<Finding>& findings) {
  if (system.ignores_memlock || !system.memlock_bytes.has_value()) return;
  const uint64_t limit = *system.memlock_bytes;
  // The default budget of registered memory.
  const uint64_t wanted = system.memory_bytes / 2;
  if (limit >= wanted && limit >= kLeastMemlockBytes) return;
  Finding finding = {.what = absl::StrCat(
                         "this process may lock no more than ", ByteText(limit),
                         " of memory (ulimit -l ", limit / 1024, ")"),
                     .fix = RaiseMemlock(system)};
  if (limit < kLeastMemlockBytes) {
    finding.severity = Severity::kError;
    finding.id = "memlock_too_low";
    finding.why = absl::StrCat(
        "memory that an RDMA device reads and writes is locked: with less "
        "than ",
        ByteText(kLeastMemlockBytes),
        " there is no room for its queues and the first messages, so that "
        "connecting or the first calls fail");
  } else {
    finding.severity = Severity::kWarning;
    finding.id = "memlock_limited";
    finding.why = absl::StrCat(
        "memory that an RDMA device reads and writes is locked: when messages "
        "need more at once, calls fail with RESOURCE_EXHAUSTED. The transport "
        "would take up to ",
        ByteText(wanted), ", half of this machine's memory");
  }
  findings.push_back(finding);
}

void CheckFork(const System& system, std::vector<Finding>& findings) {
  if (system.fork == ForkSafety::kFailed) {
    findings.push_back(
        {.severity = Severity::kWarning,
         .id = "fork_unsafe",
         .what = "fork is not safe beside registered memory: ibv_fork_init "
                 "failed",
         .why = absl::StrCat(
             "Linux ", system.kernel,
             " is older than 5.12: after a fork the device and the process may "
             "see different memory"),
         .fix = {"export RDMAV_FORK_SAFE=1  # before the program starts"}});
  } else if (system.fork == ForkSafety::kEnabled && system.huge_pages > 0 &&
             !system.huge_pages_fork_safe) {
    findings.push_back(
        {.severity = Severity::kWarning,
         .id = "fork_huge_pages",
         .what = absl::StrCat("huge pages are reserved (vm.nr_hugepages is ",
                              system.huge_pages,
                              "), and RDMAV_HUGEPAGES_SAFE is not set"),
         .why = absl::StrCat(
             "on Linux ", system.kernel,
             ", which is older than 5.12, registering huge pages fails "
             "otherwise (ibv_fork_init(3))"),
         .fix = {"export RDMAV_HUGEPAGES_SAFE=1  # before the program "
                 "starts"}});
  }
}

}  // namespace

std::vector<Finding> CheckSystem(const System& system) {
  std::vector<Finding> findings;
  if (!system.has_uverbs) findings.push_back(NoVerbsModule());
  CheckConnectionManager(system, findings);
  CheckMemlock(system, findings);
  CheckFork(system, findings);
  return findings;
}

}  // namespace rdma_info
