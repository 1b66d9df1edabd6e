// What happens to networks and devices, brought about by root with `ip`, `tc`
// and `rdma`: for tests on soft-RoCE in a VM.
//
//   if (const std::string why = Network::WhyNot(); !why.empty()) {
//     GTEST_SKIP() << why;
//   }
//   Network network;
//   network.SetLink(false);
//
// Everything is put right again when the object goes. The environment variables
// VERBENA_TEST_NETDEV and VERBENA_TEST_SERVER_NETDEV name the network
// interfaces of the clients' and of the servers' device (device_under_test.h).
//
// Thread rule: one thread at a time.
#ifndef VERBENA_TESTS_E2E_NETWORK_H_
#define VERBENA_TESTS_E2E_NETWORK_H_

#include <string>

namespace e2e {

class Network {
 public:
  // Why none of this can be done here; empty where it can.
  static std::string WhyNot();

  // REQUIRES: WhyNot() is empty.
  Network();
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Of the clients' interface.
  void SetLink(bool up);
  // What netem does to the packets that leave the clients' interface, and those
  // that leave the servers': "loss 1%", "delay 100ms". Empty: nothing.
  void Impair(const std::string& netem);

 private:
  const std::string client_netdev_;
  const std::string server_netdev_;
};

enum class Whose { kClients, kServers };

// Has the kernel remove a device, and does not wait until it is gone: the
// kernel waits in its turn until no process has the device open, and librdmacm
// keeps every device open that it has seen. So only a child process can have
// met it.
void StartRemovingDevice(Whose whose);

// Makes it again, once it is gone.
void MakeDeviceAgain(Whose whose);

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_NETWORK_H_
