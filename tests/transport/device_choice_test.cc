// Goal: "auto" is the device that fits the address, on hosts with RDMA devices
// and without.
// Method: a provider of made-up devices that answers for made-up addresses.
#include "rdma_transport/device_choice.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

using ::testing::ElementsAre;

// Devices by the addresses that they have.
class FakeProvider final : public Provider {
 public:
  explicit FakeProvider(std::vector<std::string> devices,
                        std::map<std::string, std::string> by_address = {})
      : devices_(std::move(devices)), by_address_(std::move(by_address)) {}

  std::string_view name() const override { return "fake"; }
  std::vector<std::string> ListDevices() override { return devices_; }
  absl::StatusOr<std::unique_ptr<Device>> Open(std::string_view,
                                               const DeviceOptions&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::string> DeviceFor(const SocketAddress& address,
                                        AddressUse use,
                                        absl::Duration) override {
    ++asked_;
    EXPECT_EQ(use, AddressUse::kListen) << "the other use may block";
    SocketAddress host = address;
    host.set_port(0);
    const auto found = by_address_.find(host.ToString());
    if (found != by_address_.end()) return found->second;
    return absl::NotFoundError("no device has " + address.ToString());
  }

  int asked() const { return asked_; }

 private:
  const std::vector<std::string> devices_;
  const std::map<std::string, std::string> by_address_;
  int asked_ = 0;
};

SocketAddress Address(const std::string& host) {
  return *SocketAddress::FromNumeric(host, 50051);
}

// Of documentation (RFC 5737): nobody has it, and on a host with a default
// route it is routed.
constexpr char kElsewhere[] = "192.0.2.1";

TEST(DeviceChoiceTest, WithoutRdmaDevicesItIsTheSoftwareDevice) {
  FakeProvider none({});
  EXPECT_EQ(DeviceToReach({"127.0.0.1", 1}, none), "soft");
  EXPECT_EQ(DeviceToReach({kElsewhere, 1}, none), "soft");
  // Nobody asks a resolver.
  EXPECT_EQ(DeviceToReach({"no.such.host.invalid", 1}, none), "soft");
  EXPECT_THAT(DevicesToListenWith(Address("0.0.0.0"), none),
              ElementsAre("soft"));
  EXPECT_EQ(none.asked(), 0);
}

TEST(DeviceChoiceTest, AnAddressOfThisHostIsReachedBySoftware) {
  FakeProvider one({"mlx5_0"}, {{"127.0.0.1:0", "mlx5_0"}});
  EXPECT_EQ(DeviceToReach({"127.0.0.1", 1}, one), "soft");
  EXPECT_EQ(DeviceToReach({"127.0.7.7", 1}, one), "soft");
  EXPECT_EQ(DeviceToReach({"localhost", 1}, one), "soft");
  EXPECT_EQ(DeviceToReach({"::1", 1}, one), "soft");
}

TEST(DeviceChoiceTest, WhereNoDeviceHasTheWayAnActiveOneTries) {
  FakeProvider down_and_up({"mlx5_0", "mlx5_1"}, {{"0.0.0.0:0", "mlx5_1"}});
  EXPECT_EQ(DeviceToReach({kElsewhere, 1}, down_and_up), "mlx5_1");
  EXPECT_EQ(DeviceToReach({"no.such.host.invalid", 1}, down_and_up), "mlx5_1");
  FakeProvider both_down({"mlx5_0", "mlx5_1"});
  EXPECT_EQ(DeviceToReach({kElsewhere, 1}, both_down), "mlx5_0");
}

TEST(DeviceChoiceTest, AServerListensWithTheAddressesDeviceBesides) {
  FakeProvider two({"mlx5_0", "mlx5_1"},
                   {{"0.0.0.0:0", "mlx5_0"}, {"10.0.0.2:0", "mlx5_1"}});
  EXPECT_THAT(DevicesToListenWith(Address("0.0.0.0"), two),
              ElementsAre("soft", "mlx5_0"));
  EXPECT_THAT(DevicesToListenWith(Address("10.0.0.2"), two),
              ElementsAre("soft", "mlx5_1"));
  EXPECT_THAT(DevicesToListenWith(Address("127.0.0.1"), two),
              ElementsAre("soft"));
}

}  // namespace
}  // namespace rdma
