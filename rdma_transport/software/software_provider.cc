#include "rdma_transport/software/software_provider.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/provider/local_address.h"
#include "rdma_transport/software/clock.h"
#include "rdma_transport/software/engine/device.h"
#include "rdma_transport/software/shm/mapping_cache.h"
#include "rdma_transport/software/shm/shm_connection_manager.h"

namespace rdma {
namespace {

constexpr std::string_view kDeviceName = "soft0";

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Connects devices through shared memory.
class ShmFabric final : public soft::Fabric {
 public:
  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager(
      soft::EngineDevice* device) override {
    absl::StatusOr<std::unique_ptr<soft::ShmConnectionManager>> manager =
        soft::ShmConnectionManager::Create(device, &mappings_, RandomSeed());
    if (!manager.ok()) return manager.status();
    return std::unique_ptr<ConnectionManager>(*std::move(manager));
  }

 private:
  soft::MappingCache mappings_;
};

class SoftwareProvider final : public Provider {
 public:
  std::string_view name() const override { return "software"; }

  std::vector<std::string> ListDevices() override {
    return {std::string(kDeviceName)};
  }

  absl::StatusOr<std::unique_ptr<Device>> Open(
      std::string_view device_name, const DeviceOptions& options) override {
    if (device_name != kDeviceName) {
      return absl::NotFoundError(
          absl::StrCat("no software device named '", std::string(device_name),
                       "': there is ", std::string(kDeviceName)));
    }
    absl::StatusOr<std::unique_ptr<soft::EngineDevice>> device =
        soft::EngineDevice::Open(kDeviceName, options, soft::Clock::System(),
                                 RandomSeed(), std::make_unique<ShmFabric>());
    if (!device.ok()) return device.status();
    return std::unique_ptr<Device>(*std::move(device));
  }

  absl::StatusOr<std::string> DeviceFor(const SocketAddress& address,
                                        AddressUse use,
                                        absl::Duration) override {
    if (IsLocalAddress(address)) return std::string(kDeviceName);
    const char* const remedy =
        use == AddressUse::kListen
            ? "listen on one of its addresses, or on 0.0.0.0 or [::]"
            : "a remote one needs an RDMA device that reaches it on both hosts";
    return absl::NotFoundError(
        absl::StrCat(address.ToString(), " is no address of this host, and ",
                     std::string(kDeviceName),
                     " connects processes of one host only: ", remedy));
  }
};

}  // namespace

std::unique_ptr<Provider> MakeSoftwareProvider() {
  return std::make_unique<SoftwareProvider>();
}

}  // namespace rdma
