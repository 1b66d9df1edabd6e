// What the end-to-end tests are told about the devices that they run on.
//
// By default both ends are on the software device. The environment names
// others:
//
//   VERBENA_TEST_DEVICE: the clients' device ("rxe0").
//
//   VERBENA_TEST_SERVER_DEVICE: the servers'; unset: the same.
//
//   VERBENA_TEST_ADDRESS: a numeric address of the servers' device; required
//   for a device other than "soft".
//
//   VERBENA_TEST_NAME: a host name with that address, if there is one.
//
// A test that does not fit the device skips itself and says why; what is merely
// too much for it is scaled by what is said here.
//
// Thread rule: constant after the first call.
#ifndef VERBENA_TESTS_E2E_DEVICE_UNDER_TEST_H_
#define VERBENA_TESTS_E2E_DEVICE_UNDER_TEST_H_

#include <algorithm>
#include <cstddef>
#include <string>

namespace e2e {

struct DeviceUnderTest {
  // For the argument "verbena.device".
  std::string client_device = "soft";
  std::string server_device = "soft";

  // Where servers listen.
  std::string server_address = "127.0.0.1";
  // A host name for it; empty where there is none.
  std::string server_name = "localhost";

  // Whether it is the software device, of which this host's processes are the
  // only peers.
  bool software = true;

  // Connections at once that are worth trying.
  int many_connections = 200;

  // The largest message of tests that try all sizes. A device under emulation
  // moves a megabyte in the time that another moves a hundred.
  size_t largest_bytes = size_t{64} << 20;

  // What "large" means to tests that interrupt a transfer in its midst.
  size_t large_bytes = size_t{32} << 20;

  // How much less often than on a fast device something is repeated.
  int slowness = 1;

  // What `rounds` on a fast device is on this one, once at least.
  int Rounds(int rounds) const { return std::max(1, rounds / slowness); }
};

// REQUIRES: an environment as above; ends the process where it is not.
const DeviceUnderTest& TheDeviceUnderTest();

// "rdma://ADDRESS:PORT" of the servers' device; port 0: a free one.
std::string ServerUri(int port = 0);

// A port at which nobody listens, for a server that comes, or goes and comes
// back: who asks for a free one is given none of these, and no other test's
// process has it. Another one each time, of eight.
int PortToComeBackTo();

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_DEVICE_UNDER_TEST_H_
