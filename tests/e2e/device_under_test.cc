#include "tests/e2e/device_under_test.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace e2e {
namespace {

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Any device but the software one is taken for soft-RoCE under emulation: what
// it manages, a faster one does.
DeviceUnderTest Describe() {
  DeviceUnderTest device;
  const std::string name = Environment("VERBENA_TEST_DEVICE");
  if (name.empty() || name == device.client_device) return device;
  device.software = false;
  device.client_device = name;
  device.server_device = Environment("VERBENA_TEST_SERVER_DEVICE");
  if (device.server_device.empty()) device.server_device = name;
  device.server_address = Environment("VERBENA_TEST_ADDRESS");
  device.server_name = Environment("VERBENA_TEST_NAME");
  if (device.server_address.empty()) {
    std::fprintf(stderr,
                 "set VERBENA_TEST_ADDRESS to an address of the device that "
                 "servers are to use\n");
    std::exit(EXIT_FAILURE);
  }
  device.many_connections = 40;
  device.largest_bytes = size_t{4} << 20;
  device.large_bytes = size_t{4} << 20;
  device.slowness = 10;
  return device;
}

}  // namespace

const DeviceUnderTest& TheDeviceUnderTest() {
  static const auto* const device = new DeviceUnderTest(Describe());
  return *device;
}

std::string ServerUri(int port) {
  return absl::StrCat("rdma://", TheDeviceUnderTest().server_address, ":",
                      port);
}

int PortToComeBackTo() {
  // Free ports are from 32768 on.
  static std::atomic<unsigned> calls = 0;
  return 12'000 + 8 * (getpid() % 1'000) + static_cast<int>(calls++ % 8);
}

}  // namespace e2e
