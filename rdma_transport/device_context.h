// One opened device with what all its users in this process share: the PD and
// the registered memory for messages.
//
// Contexts are shared: whoever asks for the same device with the same options
// gets the same one, and the last to let go closes it. A context also lives as
// long as any buffer of its memory. Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_DEVICE_CONTEXT_H_
#define VERBENA_RDMA_TRANSPORT_DEVICE_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/registered_memory.h"
#include "rdma_transport/verbs/protection_domain.h"

namespace rdma {

class DeviceContext : public std::enable_shared_from_this<DeviceContext> {
 public:
  struct Options {
    std::string device = "auto";
    uint64_t memory_budget_bytes = 0;  // 0: half of the machine's memory
    bool allow_other_users = false;

    auto operator<=>(const Options&) const = default;
  };

  // The process's context for these options, opened where there is none yet.
  // Errors name the device and those there are.
  static absl::StatusOr<std::shared_ptr<DeviceContext>> Get(
      const Options& options);
  // A context of its own over any device: for tests.
  static absl::StatusOr<std::shared_ptr<DeviceContext>> Create(
      std::unique_ptr<Device> device, uint64_t memory_budget_bytes);

  Device* device() const { return device_.get(); }
  ProtectionDomain* pd() const { return pd_.get(); }
  RegisteredMemory& memory() { return *memory_; }

  // Whether offers can be granted by type 2 memory windows.
  bool has_memory_windows() const;

 private:
  DeviceContext() = default;

  std::unique_ptr<Device> device_;
  std::unique_ptr<ProtectionDomain> pd_;
  std::unique_ptr<RegisteredMemory> memory_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_DEVICE_CONTEXT_H_
