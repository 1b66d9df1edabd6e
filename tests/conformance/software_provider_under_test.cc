// The suite on the software device. It has no deviations: where it and the
// specification differ, the device is wrong.
#include "rdma_transport/software/software_provider.h"
#include "tests/conformance/provider_under_test.h"

namespace rdma::conformance {

const ProviderUnderTest& TheProviderUnderTest() {
  static const auto* provider = [] {
    auto* software = new ProviderUnderTest;
    software->name = "software";
    software->make = [] { return MakeSoftwareProvider(); };
    // Its memory is shared with peers, so it must come from AllocateMemory.
    software->deviations.registers_any_memory = false;
    return software;
  }();
  return *provider;
}

}  // namespace rdma::conformance
