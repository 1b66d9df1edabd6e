#include "rdma_transport/device_choice.h"

#include <cerrno>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/hardware_provider.h"
#include "rdma_transport/provider/local_address.h"
#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// The address that this host would speak from to `peer`. connect(2) of a
// datagram socket asks the routing table, and sends nothing.
absl::StatusOr<SocketAddress> SourceAddressFor(const SocketAddress& peer) {
  const UniqueFd fd(socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress source;
  socklen_t length = sizeof(source.storage);
  if (fd.get() < 0 || connect(fd.get(), peer.get(), peer.length()) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&source.storage),
                  &length) != 0) {
    return VerbsError("looking for the way", errno, peer.ToString());
  }
  return source;
}

absl::StatusOr<std::string> DeviceByRoute(const SocketAddress& peer,
                                          Provider& provider) {
  const absl::StatusOr<SocketAddress> source = SourceAddressFor(peer);
  if (!source.ok()) return source.status();
  // That of the source address: unlike asking for the peer's, this does not
  // wait for it to be found.
  return provider.DeviceFor(*source, AddressUse::kListen, absl::ZeroDuration());
}

SocketAddress AnyAddress() { return *SocketAddress::FromNumeric("0.0.0.0", 0); }

std::unique_ptr<Provider> HardwareProviderFor(
    const rpc::FabricOptions& fabric) {
  return MakeHardwareProvider(
      {.connection_setup = fabric.set_up_by_tcp ? ConnectionSetup::kTcp
                                                : ConnectionSetup::kRdmaCm});
}

}  // namespace

std::string DeviceToReach(const HostPort& peer, Provider& provider) {
  const std::vector<std::string> devices = provider.ListDevices();
  if (devices.empty()) return kSoftDevice;
  const absl::StatusOr<std::vector<SocketAddress>> addresses =
      ResolveAddress(peer);
  absl::Status why = addresses.status();
  if (addresses.ok()) {
    for (const SocketAddress& address : *addresses) {
      if (IsLocalAddress(address)) return kSoftDevice;
    }
    const absl::StatusOr<std::string> device =
        DeviceByRoute(addresses->front(), provider);
    if (device.ok()) return *device;
    why = device.status();
  }
  const absl::StatusOr<std::string> active = provider.DeviceFor(
      AnyAddress(), AddressUse::kListen, absl::ZeroDuration());
  const std::string& device = active.ok() ? *active : devices.front();
  rpc::Log(rpc::LogLevel::kWarning,
           absl::StrCat("no RDMA device is known to reach ", peer.host,
                        ", trying ", device, ": ", std::string(why.message())));
  return device;
}

std::vector<std::string> DevicesToListenWith(const SocketAddress& address,
                                             Provider& provider) {
  std::vector<std::string> devices = {kSoftDevice};
  if (provider.ListDevices().empty()) return devices;
  const absl::StatusOr<std::string> device =
      provider.DeviceFor(address, AddressUse::kListen, absl::ZeroDuration());
  if (device.ok()) {
    devices.push_back(*device);
  } else {
    rpc::Log(rpc::LogLevel::kInfo,
             absl::StrCat("listening on ", address.ToString(),
                          " with no RDMA device: ",
                          std::string(device.status().message())));
  }
  return devices;
}

std::string DeviceToReach(const HostPort& peer,
                          const rpc::FabricOptions& fabric) {
  return DeviceToReach(peer, *HardwareProviderFor(fabric));
}

std::vector<std::string> DevicesToListenWith(const SocketAddress& address,
                                             const rpc::FabricOptions& fabric) {
  return DevicesToListenWith(address, *HardwareProviderFor(fabric));
}

}  // namespace rdma
