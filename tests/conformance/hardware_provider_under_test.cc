// The suite on real RDMA devices, or soft-RoCE, of this host: on one that
// reaches itself, or on two that reach each other. Its environment:
//
//   VERBENA_TEST_DEVICE: the clients' device ("mlx5_0", "rxe0"); unset: the
//   first one.
//
//   VERBENA_TEST_SERVER_DEVICE: the servers' device; unset: the same.
//
//   VERBENA_TEST_ADDRESS: an IPv4 address of the network interface of the
//   servers' device, which is required (loopback has none).
//
//   VERBENA_TEST_CLIENT_ADDRESS: one of the clients' device, where the two
//   differ.
//
//   VERBENA_TEST_ADDRESS_V6: an IPv6 address of the servers' device, if there
//   is one to test with.
//
// Compiled once for each way of setting connections up; see BUILD.bazel.
#include <infiniband/verbs.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "rdma_transport/hardware/hardware_provider.h"
#include "tests/conformance/provider_under_test.h"

namespace rdma::conformance {
namespace {

constexpr ConnectionSetup kSetup =
    ConnectionSetup::VERBENA_TEST_CONNECTION_SETUP;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(EXIT_FAILURE);
}

bool IsRxe(Provider& provider, const std::string& name) {
  const absl::StatusOr<std::unique_ptr<Device>> device =
      provider.Open(name, {});
  if (!device.ok()) {
    Refuse("VERBENA_TEST_DEVICE: " + device.status().ToString());
  }
  return IsSoftRoce((*device)->attributes());
}

// Where Linux 6.1's rxe departs from the specification, and what its speed
// under emulation allows. Each was seen with two independent programs.
void DescribeRxe(ProviderUnderTest* rxe) {
  rxe->silence = absl::Milliseconds(100);
  rxe->largest_message_bytes = size_t{4} << 20;
  rxe->many_connections = 50;
  rxe->many_rounds = 300;
  Deviations& deviations = rxe->deviations;
  // Errors by another status.
  deviations.wrong_source_lkey = IBV_WC_LOC_QP_OP_ERR;
  deviations.receive_wrong_lkey = IBV_WC_LOC_QP_OP_ERR;
  deviations.receive_not_writable = IBV_WC_LOC_QP_OP_ERR;
  deviations.local_invalidate_wrong_key = IBV_WC_LOC_QP_OP_ERR;
  deviations.receive_too_small_responder = IBV_WC_LOC_QP_OP_ERR;
  deviations.receive_too_small_requester = IBV_WC_REM_OP_ERR;
  // Not checked.
  deviations.enforces_window_bounds = false;
  deviations.checks_window_key_index = false;
  deviations.checks_window_domain = false;
  deviations.checks_message_length = false;
  deviations.send_queue_fills = false;
  deviations.exact_queue_depths = false;
  // Not reported.
  deviations.flags_invalidation = false;
  deviations.flushes_receives_posted_in_error = false;
  deviations.solicited_wakes_on_error = false;
  deviations.reports_last_wqe = false;
  // A dying QP waits for its windows, 50 s.
  deviations.destroys_qps_with_windows = false;
  // Nobody wakes its send queue.
  deviations.goes_on_after_draining = false;
  // Waits for ever.
  deviations.resends_fenced_requests = false;
  // By ksoftirqd, where the kernel has other work.
  deviations.flushes_soon = false;
  // One QP at a time.
  deviations.interleaves_connections = false;
}

ProviderUnderTest Describe() {
  ProviderUnderTest hardware;
  hardware.name = kSetup == ConnectionSetup::kTcp ? "hardware by tcp"
                                                  : "hardware by rdma_cm";
  hardware.make = [] {
    return MakeHardwareProvider({.connection_setup = kSetup});
  };
  hardware.server_address = Environment("VERBENA_TEST_ADDRESS");
  hardware.server_address_v6 = Environment("VERBENA_TEST_ADDRESS_V6");
  hardware.client_address = Environment("VERBENA_TEST_CLIENT_ADDRESS");
  hardware.client_device = Environment("VERBENA_TEST_DEVICE");
  hardware.server_device = Environment("VERBENA_TEST_SERVER_DEVICE");
  if (hardware.server_address.empty()) {
    Refuse(
        "set VERBENA_TEST_ADDRESS to an address of the RDMA device's network "
        "interface");
  }
  if (!hardware.server_device.empty() && hardware.client_address.empty()) {
    Refuse(
        "set VERBENA_TEST_CLIENT_ADDRESS to an address of the clients' device");
  }
  const std::unique_ptr<Provider> provider = hardware.make();
  if (hardware.client_device.empty() && !provider->ListDevices().empty()) {
    hardware.client_device = provider->ListDevices().front();
  }
  if (hardware.server_device.empty()) {
    hardware.server_device = hardware.client_device;
  }
  if (IsRxe(*provider, hardware.client_device)) DescribeRxe(&hardware);
  return hardware;
}

}  // namespace

const ProviderUnderTest& TheProviderUnderTest() {
  static const auto* provider = new ProviderUnderTest(Describe());
  return *provider;
}

}  // namespace rdma::conformance
