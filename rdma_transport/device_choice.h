// What the device "auto" stands for, by the address that it is for:
//
//   an address of this host, for a client   soft0: nothing is faster there
//   another one                             the RDMA device of the interface
//                                           that the system routes it through
//   to listen on 0.0.0.0 or [::]            soft0, and the first RDMA device
//                                           that has an active port
//   to listen on an RDMA device's address   soft0, and that device
//   to listen on another one                soft0
//
// On a host without RDMA devices it is always soft0, and nothing is asked.
//
// Thread rule: any thread.
#ifndef VERBENA_RDMA_TRANSPORT_DEVICE_CHOICE_H_
#define VERBENA_RDMA_TRANSPORT_DEVICE_CHOICE_H_

#include <string>
#include <vector>

#include "rdma_transport/address.h"
#include "rdma_transport/provider/provider.h"
#include "rpc/transport.h"

namespace rdma {

inline constexpr char kAutoDevice[] = "auto";
inline constexpr char kSoftDevice[] = "soft";

// The device for a client of `peer`. Where no device has the way there, as yet,
// the first one that is active, or the first: connecting says what is wrong,
// and tries again. Blocks while a host's name is resolved, where there is an
// RDMA device to choose.
std::string DeviceToReach(const HostPort& peer,
                          const rpc::FabricOptions& fabric);

std::vector<std::string> DevicesToListenWith(const SocketAddress& address,
                                             const rpc::FabricOptions& fabric);

// The same over any provider of RDMA devices: for tests.
std::string DeviceToReach(const HostPort& peer, Provider& provider);
std::vector<std::string> DevicesToListenWith(const SocketAddress& address,
                                             Provider& provider);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_DEVICE_CHOICE_H_
