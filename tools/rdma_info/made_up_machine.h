// Machines that need not exist, for the tests of what judges and shows them.
//
//   Machine machine = HealthyMachine();  // mlx5_0 on eth2, 10.0.0.1
//   machine.devices[0].ports[0].state = IBV_PORT_DOWN;
#ifndef VERBENA_TOOLS_RDMA_INFO_MADE_UP_MACHINE_H_
#define VERBENA_TOOLS_RDMA_INFO_MADE_UP_MACHINE_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// All modules, access to everything, unlimited locked memory.
System HealthySystem();

// Of `host`, an IPv4 or IPv6 address; a RoCE v2 one.
Gid RoceGid(int index, const std::string& host, const std::string& netdev);

// A device of one active Ethernet port, which has `host` as its GID 1 beside
// the link-local GID 0.
Device RoceDevice(const std::string& name, const std::string& netdev,
                  const std::string& host);

// A device of one active InfiniBand port with IPoIB's `netdev`.
Device InfinibandDevice(const std::string& name, const std::string& netdev);

Device SoftwareDevice();

Netdev EthernetDevice(const std::string& name, const std::string& host);

// mlx5_0 on eth2 with 10.0.0.1 and an MTU of 9000; and soft0.
Machine HealthyMachine();

rdma::SocketAddress AddressOf(const std::string& host, uint16_t port);

// Answers DeviceFor by a table; opens no device.
class MadeUpProvider final : public rdma::Provider {
 public:
  explicit MadeUpProvider(std::vector<std::string> devices)
      : devices_(std::move(devices)) {}

  // `host_port` as rdma::SocketAddress::ToString has it.
  void Answer(const std::string& host_port, rdma::AddressUse use,
              const std::string& device) {
    answers_[{host_port, use}] = device;
  }

  std::string_view name() const override { return "made up"; }
  std::vector<std::string> ListDevices() override { return devices_; }
  absl::StatusOr<std::unique_ptr<rdma::Device>> Open(
      std::string_view device_name, const rdma::DeviceOptions&) override;
  absl::StatusOr<std::string> DeviceFor(const rdma::SocketAddress& address,
                                        rdma::AddressUse use,
                                        absl::Duration) override;

 private:
  const std::vector<std::string> devices_;
  std::map<std::pair<std::string, rdma::AddressUse>, std::string> answers_;
};

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_MADE_UP_MACHINE_H_
