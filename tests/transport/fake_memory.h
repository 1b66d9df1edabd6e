// Registered memory over a FakeDevice, owned as a DeviceContext owns it: what
// buffers are left hold it too.
#ifndef VERBENA_TESTS_TRANSPORT_FAKE_MEMORY_H_
#define VERBENA_TESTS_TRANSPORT_FAKE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "rdma_transport/registered_memory.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "tests/transport/fake_device.h"

namespace rdma::testing {

class FakeMemory {
 public:
  static std::shared_ptr<FakeMemory> Create(uint64_t budget_bytes) {
    auto* const fake = new FakeMemory;
    fake->pd_ = *ProtectionDomain::Create(&fake->device_);
    fake->memory_ =
        std::make_unique<RegisteredMemory>(fake->pd_.get(), budget_bytes);
    return std::shared_ptr<FakeMemory>(fake, [](FakeMemory* unowned) {
      unowned->memory().WhenUnused([unowned] { delete unowned; });
    });
  }
  ~FakeMemory() { *destroyed_ = true; }

  FakeDevice& device() { return device_; }
  ProtectionDomain* pd() { return pd_.get(); }
  RegisteredMemory& memory() { return *memory_; }
  // Becomes true with the end of this object.
  std::shared_ptr<const bool> destroyed() const { return destroyed_; }

 private:
  FakeMemory() = default;

  const std::shared_ptr<bool> destroyed_ = std::make_shared<bool>(false);
  FakeDevice device_;
  std::unique_ptr<ProtectionDomain> pd_;
  std::unique_ptr<RegisteredMemory> memory_;
};

}  // namespace rdma::testing

#endif  // VERBENA_TESTS_TRANSPORT_FAKE_MEMORY_H_
