#include "rdma_transport/software/software_provider.h"

#include "absl/strings/str_cat.h"

namespace rdma {
namespace {

constexpr std::string_view kDeviceName = "soft0";

class SoftwareProvider final : public Provider {
 public:
  std::string_view name() const override { return "software"; }

  std::vector<std::string> ListDevices() override {
    return {std::string(kDeviceName)};
  }

  absl::StatusOr<std::unique_ptr<Device>> Open(
      std::string_view device_name, const DeviceOptions& options) override {
    return absl::NotFoundError(
        absl::StrCat("no software device named '", std::string(device_name),
                     "': there is ", std::string(kDeviceName)));
  }
};

}  // namespace

std::unique_ptr<Provider> MakeSoftwareProvider() {
  return std::make_unique<SoftwareProvider>();
}

}  // namespace rdma
