// One program for tests that make calls fail: it makes every kind of object on
// a device, by the owning types of rdma_transport/verbs/, has a connection
// rejected, connects two QPs, and takes everything down again.
//
//   EXPECT_TRUE(RunDeviceProgram(provider.get(), address).ok());
//   EXPECT_EQ(plan.Leaks(), "");
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_TRANSPORT_DEVICE_PROGRAM_H_
#define VERBENA_TESTS_TRANSPORT_DEVICE_PROGRAM_H_

#include "absl/status/status.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// On the device that has `address`, whose port is 0. OK, or the first failure,
// be it of a call or in an event; nothing is left either way. Ends by itself
// after 10 s at most.
absl::Status RunDeviceProgram(Provider* provider, const SocketAddress& address);

}  // namespace rdma

#endif  // VERBENA_TESTS_TRANSPORT_DEVICE_PROGRAM_H_
