#include "rdma_transport/device_context.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/device_use.h"
#include "rdma_transport/hardware/hardware_provider.h"
#include "rdma_transport/software/software_provider.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

uint64_t HalfOfMachineMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return uint64_t{1} << 30;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) / 2;
}

// "soft" is the software device; any other name is a verbs device's.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const DeviceContext::Options& options) {
  DeviceOptions device_options;
  device_options.single_threaded_queues = true;
  device_options.allow_other_users = options.allow_other_users;
  const std::unique_ptr<Provider> software = MakeSoftwareProvider();
  std::string name = software->ListDevices().front();
  const bool soft = options.device == "soft" || options.device == name;
  if (!soft) name = options.device;
  const HardwareOptions hardware = {
      .connection_setup = options.set_up_by_tcp ? ConnectionSetup::kTcp
                                                : ConnectionSetup::kRdmaCm};
  absl::StatusOr<std::unique_ptr<Device>> device =
      soft ? software->Open(name, device_options)
           : MakeHardwareProvider(hardware)->Open(name, device_options);
  // An option with a wrong value. NOT_FOUND is for what a method looked for.
  if (absl::IsNotFound(device.status())) {
    return absl::InvalidArgumentError(device.status().message());
  }
  if (device.ok()) {
    rpc::Log(rpc::LogLevel::kInfo, absl::StrCat("using device ", name, " for '",
                                                options.device, "'"));
  }
  return device;
}

// Where a context has no user left, `users` has expired and only buffers of its
// memory keep it.
struct Entry {
  DeviceContext* context = nullptr;
  std::weak_ptr<DeviceContext> users;
};

struct Registry {
  absl::Mutex mutex;
  std::map<DeviceContext::Options, Entry> contexts ABSL_GUARDED_BY(mutex);
};

Registry& GetRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

void Destroy(DeviceContext* context) {
  {
    Registry& registry = GetRegistry();
    absl::MutexLock lock(&registry.mutex);
    std::erase_if(registry.contexts, [context](const auto& item) {
      return item.second.context == context;
    });
  }
  delete context;
}

std::shared_ptr<DeviceContext> Share(DeviceContext* context) {
  return {context, [](DeviceContext* unshared) {
            unshared->memory().WhenUnused([unshared] { Destroy(unshared); });
          }};
}

}  // namespace

absl::StatusOr<std::shared_ptr<DeviceContext>> DeviceContext::Get(
    const Options& options) {
  Registry& registry = GetRegistry();
  absl::MutexLock lock(&registry.mutex);
  Entry& entry = registry.contexts[options];
  if (std::shared_ptr<DeviceContext> context = entry.users.lock()) {
    return context;
  }
  if (entry.context == nullptr || !entry.context->memory().StayInUse()) {
    absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options);
    if (!device.ok()) return device.status();
    absl::StatusOr<std::unique_ptr<DeviceContext>> created =
        New(*std::move(device), options.memory_budget_bytes);
    if (!created.ok()) return created.status();
    entry.context = created->release();
  }
  std::shared_ptr<DeviceContext> context = Share(entry.context);
  entry.users = context;
  return context;
}

absl::StatusOr<std::shared_ptr<DeviceContext>> DeviceContext::Create(
    std::unique_ptr<Device> device, uint64_t memory_budget_bytes) {
  absl::StatusOr<std::unique_ptr<DeviceContext>> created =
      New(std::move(device), memory_budget_bytes);
  if (!created.ok()) return created.status();
  return Share(created->release());
}

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::New(
    std::unique_ptr<Device> device, uint64_t memory_budget_bytes) {
  auto context = absl::WrapUnique(new DeviceContext);
  context->device_ = std::move(device);
  absl::StatusOr<std::unique_ptr<ProtectionDomain>> pd =
      ProtectionDomain::Create(context->device_.get());
  if (!pd.ok()) return pd.status();
  context->pd_ = *std::move(pd);
  if (memory_budget_bytes == 0) memory_budget_bytes = HalfOfMachineMemory();
  context->memory_ = std::make_unique<RegisteredMemory>(context->pd_.get(),
                                                        memory_budget_bytes);
  return context;
}

void DeviceContext::AddListener(DeviceEventListener* listener) {
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.push_back(listener);
}

void DeviceContext::RemoveListener(DeviceEventListener* listener) {
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.erase(std::remove(listeners_.begin(), listeners_.end(), listener),
                   listeners_.end());
}

bool DeviceContext::HandleEvents() {
  // Somebody else does it.
  if (!listeners_mutex_.TryLock()) return false;
  bool any = false;
  ibv_async_event event;
  while (device_->GetAsyncEvent(&event) == 0) {
    any = true;
    DeviceEvent seen = {.type = event.event_type};
    switch (event.event_type) {
      case IBV_EVENT_CQ_ERR:
        seen.cq = event.element.cq;
        break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        seen.qp_num = event.element.qp->qp_num;
        break;
      case IBV_EVENT_PORT_ACTIVE:
      case IBV_EVENT_PORT_ERR:
        seen.port = event.element.port_num;
        break;
      default:
        break;
    }
    // From here on the object may go.
    device_->AckAsyncEvent(&event);
    for (DeviceEventListener* const listener : listeners_) {
      listener->OnDeviceEvent(seen);
    }
  }
  listeners_mutex_.Unlock();
  return any;
}

bool DeviceContext::has_memory_windows() const {
  return GrantsByWindows(device_->attributes());
}

}  // namespace rdma
