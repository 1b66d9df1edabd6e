// Registered memory over a FakeDevice, owned as a DeviceContext owns it: by a
// shared pointer that live buffers hold too.
#ifndef VERBENA_TESTS_TRANSPORT_FAKE_MEMORY_H_
#define VERBENA_TESTS_TRANSPORT_FAKE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "rdma_transport/registered_memory.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "tests/transport/fake_device.h"

namespace rdma::testing {

class FakeMemory : public std::enable_shared_from_this<FakeMemory> {
 public:
  static std::shared_ptr<FakeMemory> Create(uint64_t budget_bytes) {
    auto result = std::make_shared<FakeMemory>();
    result->pd_ = *ProtectionDomain::Create(&result->device_);
    result->memory_ = std::make_unique<RegisteredMemory>(
        result->pd_.get(), budget_bytes,
        [weak = std::weak_ptr<FakeMemory>(result)] { return weak.lock(); });
    return result;
  }

  FakeDevice& device() { return device_; }
  ProtectionDomain* pd() { return pd_.get(); }
  RegisteredMemory& memory() { return *memory_; }

 private:
  FakeDevice device_;
  std::unique_ptr<ProtectionDomain> pd_;
  std::unique_ptr<RegisteredMemory> memory_;
};

}  // namespace rdma::testing

#endif  // VERBENA_TESTS_TRANSPORT_FAKE_MEMORY_H_
