#include "rdma_transport/hardware/hardware_provider.h"

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/device_list.h"
#include "rdma_transport/hardware/fork_safety.h"
#include "rdma_transport/hardware/hardware_device.h"
#include "rdma_transport/hardware/route.h"
#include "rdma_transport/provider/local_address.h"

namespace rdma {
namespace {

class HardwareProvider final : public Provider {
 public:
  explicit HardwareProvider(const HardwareOptions& options)
      : options_(options) {}

  std::string_view name() const override { return "hardware"; }

  std::vector<std::string> ListDevices() override {
    return DeviceList::Get().names();
  }

  absl::StatusOr<std::unique_ptr<Device>> Open(std::string_view device_name,
                                               const DeviceOptions&) override {
    const DeviceList devices = DeviceList::Get();
    ibv_device* const device = devices.Find(device_name);
    if (device == nullptr) return devices.NotFound(device_name);
    absl::StatusOr<std::unique_ptr<HardwareDevice>> opened =
        HardwareDevice::Open(device, options_);
    if (!opened.ok()) return opened.status();
    return std::unique_ptr<Device>(*std::move(opened));
  }

  absl::StatusOr<std::string> DeviceFor(const SocketAddress& address,
                                        AddressUse use,
                                        absl::Duration timeout) override {
    if (options_.connection_setup == ConnectionSetup::kRdmaCm) {
      return FindDeviceByRoute(address, use, timeout);
    }
    // TCP's addresses need not be the device's.
    if (use == AddressUse::kListen && !IsLocalAddress(address)) {
      return absl::NotFoundError(
          absl::StrCat(address.ToString(), " is no address of this host"));
    }
    return FindActiveDevice();
  }

 private:
  const HardwareOptions options_;
};

}  // namespace

std::unique_ptr<Provider> MakeHardwareProvider(const HardwareOptions& options) {
  // Before anything is registered.
  MakeForkSafe();
  return std::make_unique<HardwareProvider>(options);
}

}  // namespace rdma
