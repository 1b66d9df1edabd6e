// One opened device with what all its users in this process share: the PD and
// the registered memory for messages.
//
// Contexts are shared: whoever asks for the same device with the same options
// gets the same one, and the last to let go closes it. A context also lives as
// long as any buffer of its memory, and is found then (unless asked for at the
// very moment at which its last user lets go). Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_DEVICE_CONTEXT_H_
#define VERBENA_RDMA_TRANSPORT_DEVICE_CONTEXT_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/registered_memory.h"
#include "rdma_transport/verbs/protection_domain.h"

namespace rdma {

// An asynchronous event of the device, ibv_get_async_event(3).
struct DeviceEvent {
  ibv_event_type type;
  uint32_t qp_num = 0;         // of a QP's
  const ibv_cq* cq = nullptr;  // of a CQ's; to compare
  int port = 0;                // of a port's
};

// Who wants to hear of them.
class DeviceEventListener {
 public:
  // On any thread, one event at a time. Must not block.
  virtual void OnDeviceEvent(const DeviceEvent& event) = 0;

 protected:
  ~DeviceEventListener() = default;
};

class DeviceContext {
 public:
  struct Options {
    std::string device = "soft";       // or a device's name
    uint64_t memory_budget_bytes = 0;  // 0: half of the machine's memory
    bool allow_other_users = false;
    bool set_up_by_tcp = false;

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

  // Events come once for the device: whoever reads them tells all who listen. A
  // listener hears of none once RemoveListener has returned.
  void AddListener(DeviceEventListener* listener);
  void RemoveListener(DeviceEventListener* listener);
  // Becomes readable when HandleEvents has something to do.
  int event_fd() const { return device_->context()->async_fd; }
  // Does not block. True: there were events.
  bool HandleEvents();

 private:
  DeviceContext() = default;
  static absl::StatusOr<std::unique_ptr<DeviceContext>> New(
      std::unique_ptr<Device> device, uint64_t memory_budget_bytes);

  std::unique_ptr<Device> device_;
  std::unique_ptr<ProtectionDomain> pd_;
  std::unique_ptr<RegisteredMemory> memory_;

  absl::Mutex listeners_mutex_;
  std::vector<DeviceEventListener*> listeners_
      ABSL_GUARDED_BY(listeners_mutex_);
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_DEVICE_CONTEXT_H_
