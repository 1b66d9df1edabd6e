// One thing that is worth to know about a machine: what, why, what to do.
#ifndef VERBENA_TOOLS_RDMA_INFO_FINDING_H_
#define VERBENA_TOOLS_RDMA_INFO_FINDING_H_

#include <string>
#include <string_view>
#include <vector>

namespace rdma_info {

enum class Severity {
  kError,    // RDMA hardware, or the address, cannot be used
  kWarning,  // it can, but something will not work, or is about to fail
  kNote,     // worth to know
};

inline std::string NameOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      break;
  }
  return "note";
}

struct Finding {
  Severity severity = Severity::kNote;
  // Names the kind: "port_down". Part of the JSON report: never renamed.
  std::string_view id;
  std::string subject;  // "mlx5_0", "mlx5_0/1", "eth2", ...; may be empty
  std::string what;
  std::string why;
  // Commands, each with a comment where it needs one; to be run by the user.
  std::vector<std::string> fix;
};

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_FINDING_H_
