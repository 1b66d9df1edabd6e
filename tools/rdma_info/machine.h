// What rdma_info knows of a machine: plain data, no handles.
//
// Collecting fills it (system.h, devices.h, netdevs.h, address_choices.h),
// Diagnose (diagnose.h) judges it, and the reports (text_report.h,
// json_report.h) show it. Only collecting touches the machine, so that tests of
// the rest make up whatever machine they want:
//
//   Machine machine;
//   machine.devices = CollectDevices(Roots(), hardware.get(), software.get());
//   for (const Finding& finding : Diagnose(machine, {})) ...
#ifndef VERBENA_TOOLS_RDMA_INFO_MACHINE_H_
#define VERBENA_TOOLS_RDMA_INFO_MACHINE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"

namespace rdma_info {

// Where the system's files are; tests have their own.
struct Roots {
  std::string sys = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

// Whether this process may open a file of /dev for reading and writing.
enum class Access { kGranted, kDenied, kMissing };

// --- Devices -----------------------------------------------------------------

enum class LinkLayer { kUnknown, kInfiniband, kEthernet };

enum class GidType { kInfiniband, kIwarp, kRoceV1, kRoceV2 };

struct Gid {
  int index = 0;
  ibv_gid gid = {};
  GidType type = GidType::kInfiniband;
  std::string netdev;  // empty on InfiniBand
};

struct Port {
  int number = 1;
  ibv_port_state state = IBV_PORT_NOP;
  std::string physical_state;  // the kernel's word: "LinkUp", "Disabled"
  LinkLayer link_layer = LinkLayer::kUnknown;
  std::string rate;          // the kernel's words: "100 Gb/sec (4X EDR)"
  int active_mtu_bytes = 0;  // 0: the device could not be asked
  int max_mtu_bytes = 0;
  uint16_t sm_lid = 0;  // InfiniBand's subnet manager; 0: none
  std::vector<Gid> gids;
  // Network interfaces on it: of its GIDs, IPoIB's, or of its adapter.
  std::vector<std::string> netdevs;
};

struct Device {
  std::string name;          // "mlx5_0", "soft0"
  bool is_software = false;  // Verbena's own, which has no ports to show
  // Whether libibverbs knows it: it needs the kernel's ib_uverbs, and the part
  // of the driver that runs in the process.
  bool is_listed = true;
  std::string node;  // "/dev/infiniband/uverbs0"; empty without ib_uverbs
  Access access = Access::kGranted;  // to `node`
  // Whether it could be opened. Where not, `attributes` and what follows are
  // zero, and the rest is what the kernel shows to everybody.
  absl::Status opened;
  std::string driver;     // "mlx5_core", "rdma_rxe"; empty where unknown
  std::string firmware;   // empty where it has none
  std::string node_type;  // "CA", "RNIC" (iWARP), "SWITCH", ...
  std::vector<Port> ports;
  ibv_device_attr attributes = {};
  uint32_t max_inline_data = 0;
  uint32_t useful_inline_data = 0;  // rdma::Device's
  bool has_odp = false;             // on-demand paging, of RC
};

// --- Network -----------------------------------------------------------------

struct Netdev {
  std::string name;
  int mtu_bytes = 0;
  bool is_up = false;       // ip link set up
  bool has_carrier = true;  // false: nothing on the other end
  // IPv4, and IPv6 but for link-local ones, which name no host by themselves.
  std::vector<std::string> addresses;
};

// --- System ------------------------------------------------------------------

enum class ForkSafety { kUnneeded, kEnabled, kFailed };

// Of the cgroups that this process is in, the strictest. Nothing: "max".
struct CgroupLimit {
  std::string device;
  std::optional<uint64_t> contexts;  // hca_handle: opened devices
  std::optional<uint64_t> objects;   // hca_object: QPs, CQs, MRs, ...
};

struct System {
  std::string kernel;  // uname -r
  uint64_t memory_bytes = 0;
  // RLIMIT_MEMLOCK. Nothing: unlimited.
  std::optional<uint64_t> memlock_bytes;
  std::optional<uint64_t> memlock_hard_bytes;
  bool ignores_memlock = false;       // CAP_IPC_LOCK, as the kernel counts it
  bool has_uverbs = false;            // the kernel's interface for ibverbs
  bool has_rdma_ucm = false;          // and for librdmacm
  Access rdma_cm = Access::kMissing;  // /dev/infiniband/rdma_cm
  ForkSafety fork = ForkSafety::kUnneeded;
  bool huge_pages_fork_safe = false;  // RDMAV_HUGEPAGES_SAFE is set
  uint64_t huge_pages = 0;            // reserved: vm.nr_hugepages
  std::vector<CgroupLimit> cgroup_limits;
};

// --- An address --------------------------------------------------------------

// What one provider says about one address.
struct AddressChoice {
  rdma::SocketAddress address;
  rdma::AddressUse use = rdma::AddressUse::kConnect;
  bool is_software = false;  // the provider
  absl::StatusOr<std::string> device;
  // To connect: the local address that the system's route has.
  std::optional<rdma::SocketAddress> source;
};

struct AddressReport {
  std::string text;       // as the user wrote it
  absl::Status resolved;  // whether the host's name has an address
  std::vector<AddressChoice> choices;
};

struct Machine {
  System system;
  std::vector<Device> devices;
  std::vector<Netdev> netdevs;
  std::optional<AddressReport> address;
};

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_MACHINE_H_
