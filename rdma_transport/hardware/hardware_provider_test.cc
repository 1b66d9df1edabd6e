// Goal: what the provider says where a device is missing helps. Method: names
// and addresses that no device of any host has; the rest needs a device, and is
// the conformance suite's.
#include "rdma_transport/hardware/hardware_provider.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HardwareProviderTest, NamesWhatThereIsInstead) {
  const std::unique_ptr<Provider> provider = MakeHardwareProvider();
  const absl::Status status = provider->Open("no_such_device_0", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  const std::vector<std::string> names = provider->ListDevices();
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("no_such_device_0"),
            HasSubstr(names.empty() ? "rdma link add" : names.front())));
}

TEST(HardwareProviderTest, NoDeviceReachesTheLoopbackAddress) {
  for (const ConnectionSetup setup :
       {ConnectionSetup::kRdmaCm, ConnectionSetup::kTcp}) {
    const std::unique_ptr<Provider> provider =
        MakeHardwareProvider({.connection_setup = setup});
    if (setup == ConnectionSetup::kTcp && !provider->ListDevices().empty()) {
      continue;  // any device may serve a TCP address
    }
    const absl::StatusOr<std::string> name =
        provider->DeviceFor(*SocketAddress::FromNumeric("127.0.0.1", 50051),
                            AddressUse::kConnect, absl::Seconds(5));
    EXPECT_FALSE(name.ok());
    EXPECT_NE(name.status().message(), "");
  }
}

TEST(HardwareProviderTest, NoDeviceListensOnAForeignAddress) {
  for (const ConnectionSetup setup :
       {ConnectionSetup::kRdmaCm, ConnectionSetup::kTcp}) {
    EXPECT_FALSE(
        MakeHardwareProvider({.connection_setup = setup})
            ->DeviceFor(*SocketAddress::FromNumeric("192.0.2.1", 50051),
                        AddressUse::kListen, absl::Seconds(5))
            .ok());
  }
}

}  // namespace
}  // namespace rdma
