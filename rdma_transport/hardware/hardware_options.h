// What a user may choose about RDMA devices; the defaults suit most.
//
//   rdma::MakeHardwareProvider({.connection_setup = ConnectionSetup::kTcp});
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_OPTIONS_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_OPTIONS_H_

#include <cstdint>
#include <optional>

namespace rdma {

// How two QPs learn of each other. Both ends must use the same.
enum class ConnectionSetup {
  // rdma_cm(7): needs IP addresses on the RDMA devices (always there with
  // RoCE and iWARP, IPoIB on InfiniBand). It finds device, port and GID by the
  // address's route.
  kRdmaCm,
  // Over a TCP connection, on any network that joins the hosts (docs/
  // hardware.md has the messages). For fabrics without IP, and where rdma_cm is
  // blocked. Not for iWARP.
  kTcp,
};

struct HardwareOptions {
  ConnectionSetup connection_setup = ConnectionSetup::kRdmaCm;

  // For kTcp, where the choice by address does not fit; rdma_cm makes its own.
  //
  // The port of the device, counted from 1. Nothing: the one whose GID is the
  // local address of the TCP connection, or the first that is active.
  std::optional<uint8_t> port_num;
  // The index in that port's GID table (`rdma_info`, show_gids). Nothing: the
  // RoCE v2 GID that is the local address of the TCP connection; 0 on
  // InfiniBand.
  std::optional<uint8_t> gid_index;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_OPTIONS_H_
