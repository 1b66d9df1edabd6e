// RDMA devices of this host, by libibverbs and librdmacm: NICs of any vendor,
// and Linux's soft-RoCE (rdma_rxe). See docs/hardware.md.
//
//   std::unique_ptr<rdma::Provider> provider = rdma::MakeHardwareProvider();
//   absl::StatusOr<std::string> name =
//       provider->DeviceFor(address, AddressUse::kConnect, absl::Seconds(5));
//   absl::StatusOr<std::unique_ptr<rdma::Device>> device =
//       provider->Open(*name, {});
//
// What to know of it beside provider.h:
// - No state is shared between devices, providers, or connection managers;
//   what libibverbs and librdmacm share inside a process is their own.
// - DeviceOptions::single_threaded_queues changes nothing: the queues are the
//   driver's, whose locks are free when nobody waits for them.
// - After fork(2) the child must not use the device, only exec or _exit. The
//   parent's registered memory stays where it is (fork_safety.h).
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_PROVIDER_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_PROVIDER_H_

#include <memory>

#include "rdma_transport/hardware/hardware_options.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// The provider "hardware". Never fails: a host without devices lists none.
std::unique_ptr<Provider> MakeHardwareProvider(
    const HardwareOptions& options = {});

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_PROVIDER_H_
