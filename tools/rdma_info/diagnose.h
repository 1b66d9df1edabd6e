// What is wrong with a machine, why it matters, and what to do about it.
//
//   const Diagnosis diagnosis = Diagnose(machine, {});
//   for (const Finding& finding : diagnosis.findings) Show(finding);
//   return diagnosis.HasErrors() ? 1 : 0;
//
// Pure; thread-safe. The checks themselves are in checks.h, one function for
// each part of a machine.
#ifndef VERBENA_TOOLS_RDMA_INFO_DIAGNOSE_H_
#define VERBENA_TOOLS_RDMA_INFO_DIAGNOSE_H_

#include <string>
#include <vector>

#include "tools/rdma_info/finding.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// How this machine stands with RDMA hardware. The software device is always
// there, so that a machine without hardware is a fine one.
enum class Hardware { kNone, kUnusable, kReady };

std::string NameOf(Hardware hardware);  // "none", "unusable", "ready"

struct Diagnosis {
  Hardware hardware = Hardware::kNone;
  // Devices with a port that the transport can use, kReady's.
  std::vector<std::string> usable_devices;
  std::vector<Finding> findings;  // errors first, notes last

  bool HasErrors() const;
};

struct DiagnoseOptions {
  // A machine, or an address, that has the software device only is an error.
  bool require_hardware = false;
};

Diagnosis Diagnose(const Machine& machine, const DiagnoseOptions& options);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_DIAGNOSE_H_
