// Goal: the software device is chosen for this host's addresses and no others,
// and what it says otherwise helps. Method: addresses that are local, or
// remote, on every host.
#include "rdma_transport/software/software_provider.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

absl::StatusOr<std::string> DeviceFor(const char* host, AddressUse use) {
  return MakeSoftwareProvider()->DeviceFor(
      *SocketAddress::FromNumeric(host, 50051), use, absl::Seconds(1));
}

TEST(SoftwareProviderTest, ReachesThisHost) {
  for (const AddressUse use : {AddressUse::kConnect, AddressUse::kListen}) {
    const absl::StatusOr<std::string> name = DeviceFor("127.0.0.1", use);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_TRUE(MakeSoftwareProvider()->Open(*name, {}).ok());
  }
  EXPECT_TRUE(DeviceFor("0.0.0.0", AddressUse::kListen).ok());
}

TEST(SoftwareProviderTest, SaysWhyARemoteAddressNeedsAnotherDevice) {
  for (const AddressUse use : {AddressUse::kConnect, AddressUse::kListen}) {
    const absl::Status status = DeviceFor("192.0.2.1", use).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(testing::HasSubstr("192.0.2.1:50051"),
                               testing::HasSubstr("soft0")));
  }
}

}  // namespace
}  // namespace rdma
