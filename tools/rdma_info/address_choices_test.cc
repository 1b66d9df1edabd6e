// Goal: both providers are asked, for each use and address. Method: providers
// made up; the host's own loopback for routes.
#include "tools/rdma_info/address_choices.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/made_up_machine.h"

namespace rdma_info {
namespace {

constexpr rdma::AddressUse kConnect = rdma::AddressUse::kConnect;
constexpr rdma::AddressUse kListen = rdma::AddressUse::kListen;

AddressReport Collect(const std::string& host, rdma::Provider* hardware,
                      rdma::Provider* software) {
  return CollectAddressChoices(host + ":7", {host, 7}, hardware, software,
                               absl::Seconds(5));
}

TEST(AddressChoicesTest, EveryProviderIsAskedForEveryUse) {
  MadeUpProvider hardware({"mlx5_0"});
  hardware.Answer("127.0.0.1:7", kListen, "mlx5_0");
  MadeUpProvider software({"soft0"});
  software.Answer("127.0.0.1:7", kConnect, "soft0");
  const AddressReport report = Collect("127.0.0.1", &hardware, &software);
  EXPECT_EQ(report.text, "127.0.0.1:7");
  EXPECT_TRUE(report.resolved.ok());
  ASSERT_EQ(report.choices.size(), 4u);
  const auto expect = [&](size_t index, rdma::AddressUse use, bool is_software,
                          const std::string& device) {
    const AddressChoice& choice = report.choices[index];
    EXPECT_EQ(choice.use, use) << index;
    EXPECT_EQ(choice.is_software, is_software) << index;
    EXPECT_EQ(choice.device.ok() ? *choice.device : "", device) << index;
    EXPECT_EQ(choice.address.ToString(), "127.0.0.1:7") << index;
  };
  expect(0, kConnect, false, "");
  expect(1, kConnect, true, "soft0");
  expect(2, kListen, false, "mlx5_0");
  expect(3, kListen, true, "");
}

TEST(AddressChoicesTest, AWildcardIsForListening) {
  MadeUpProvider hardware({});
  MadeUpProvider software({"soft0"});
  const AddressReport report = Collect("0.0.0.0", &hardware, &software);
  ASSERT_EQ(report.choices.size(), 2u);
  EXPECT_EQ(report.choices[0].use, kListen);
  EXPECT_EQ(report.choices[1].use, kListen);
}

TEST(AddressChoicesTest, ANameWithoutAddressIsReported) {
  MadeUpProvider hardware({});
  MadeUpProvider software({"soft0"});
  // RFC 6761 keeps the name from ever being given to anybody.
  const AddressReport report =
      Collect("no-such-host.invalid", &hardware, &software);
  EXPECT_FALSE(report.resolved.ok());
  EXPECT_TRUE(report.choices.empty());
}

TEST(AddressChoicesTest, TheSourceIsWhereTheRouteStarts) {
  const auto source = LocalAddressTowards(AddressOf("127.0.0.1", 0));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->ToString(), "127.0.0.1:0");
}

}  // namespace
}  // namespace rdma_info
