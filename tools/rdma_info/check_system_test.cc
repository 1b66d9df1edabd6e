// Goal: what stands in the way of every RDMA device is found, and nothing is
// found on a healthy system. Method: systems made up, one thing wrong at a
// time.
#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/checks.h"
#include "tools/rdma_info/made_up_machine.h"

namespace rdma_info {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The one finding there must be.
Finding Only(const System& system) {
  const std::vector<Finding> findings = CheckSystem(system);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding() : findings[0];
}

TEST(CheckSystemTest, AHealthySystemHasNothingToSay) {
  EXPECT_THAT(CheckSystem(HealthySystem()), IsEmpty());
}

TEST(CheckSystemTest, WithoutIbUverbsNothingWorks) {
  System system = HealthySystem();
  system.has_uverbs = false;
  const Finding finding = Only(system);
  EXPECT_EQ(finding.id, "ib_uverbs_missing");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_THAT(finding.fix, Contains("sudo modprobe ib_uverbs"));
}

TEST(CheckSystemTest, WithoutRdmaUcmItsFileIsNotMissedBesides) {
  System system = HealthySystem();
  system.has_rdma_ucm = false;
  system.rdma_cm = Access::kMissing;
  const Finding finding = Only(system);
  EXPECT_EQ(finding.id, "rdma_ucm_missing");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_THAT(finding.fix, Contains("sudo modprobe rdma_ucm"));
}

TEST(CheckSystemTest, AContainerMayLackRdmaCm) {
  System system = HealthySystem();
  system.rdma_cm = Access::kMissing;
  const Finding finding = Only(system);
  EXPECT_EQ(finding.id, "rdma_cm_node_missing");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_THAT(finding.fix, Contains(HasSubstr("--device=/dev/infiniband")));
}

TEST(CheckSystemTest, RdmaCmMayBeForOthers) {
  System system = HealthySystem();
  system.rdma_cm = Access::kDenied;
  const Finding finding = Only(system);
  EXPECT_EQ(finding.id, "rdma_cm_access_denied");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_THAT(finding.fix,
              Contains(HasSubstr("chmod 0666 /dev/infiniband/rdma_cm")));
}

// --- Locked memory -----------------------------------------------------------

System Limited(uint64_t bytes) {
  System system = HealthySystem();
  system.memlock_bytes = bytes;
  system.memlock_hard_bytes = bytes;
  return system;
}

TEST(CheckMemlockTest, TooLittleToStartIsAnError) {
  const Finding finding = Only(Limited(kLeastMemlockBytes - 1));
  EXPECT_EQ(finding.id, "memlock_too_low");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_THAT(Only(Limited(64 << 10)).what, HasSubstr("64 KiB"));
  EXPECT_THAT(Only(Limited(64 << 10)).what, HasSubstr("ulimit -l 64)"));
}

TEST(CheckMemlockTest, LessThanTheBudgetIsAWarning) {
  for (const uint64_t bytes :
       {kLeastMemlockBytes, HealthySystem().memory_bytes / 2 - 1}) {
    const Finding finding = Only(Limited(bytes));
    EXPECT_EQ(finding.id, "memlock_limited");
    EXPECT_EQ(finding.severity, Severity::kWarning);
    EXPECT_THAT(finding.why, HasSubstr("8 GiB"));
  }
}

TEST(CheckMemlockTest, TheBudgetIsEnough) {
  EXPECT_THAT(CheckSystem(Limited(HealthySystem().memory_bytes / 2)),
              IsEmpty());
}

TEST(CheckMemlockTest, TheCapabilityMakesTheLimitVoid) {
  System system = Limited(0);
  system.ignores_memlock = true;
  EXPECT_THAT(CheckSystem(system), IsEmpty());
}

TEST(CheckMemlockTest, UlimitIsProposedWhereItWouldWork) {
  System system = Limited(64 << 10);
  const auto ulimit = HasSubstr("ulimit -l unlimited");
  EXPECT_THAT(Only(system).fix, Not(Contains(ulimit)));
  EXPECT_THAT(Only(system).fix, Contains(HasSubstr("limits.d")));
  system.memlock_hard_bytes.reset();
  EXPECT_THAT(Only(system).fix, Contains(ulimit));
}

// --- Fork --------------------------------------------------------------------

TEST(CheckForkTest, AFailureIsAWarning) {
  System system = HealthySystem();
  system.fork = ForkSafety::kFailed;
  EXPECT_EQ(Only(system).id, "fork_unsafe");
  EXPECT_EQ(Only(system).severity, Severity::kWarning);
}

TEST(CheckForkTest, HugePagesNeedAVariableWhereForkWasMadeSafe) {
  System system = HealthySystem();
  system.fork = ForkSafety::kEnabled;
  EXPECT_THAT(CheckSystem(system), IsEmpty());
  system.huge_pages = 512;
  EXPECT_EQ(Only(system).id, "fork_huge_pages");
  EXPECT_EQ(Only(system).severity, Severity::kWarning);
  system.huge_pages_fork_safe = true;
  EXPECT_THAT(CheckSystem(system), IsEmpty());
  system.huge_pages_fork_safe = false;
  system.fork = ForkSafety::kUnneeded;
  EXPECT_THAT(CheckSystem(system), IsEmpty());
}

}  // namespace
}  // namespace rdma_info
