#include "rdma_transport/client_poller.h"

#include <cstdint>
#include <limits>
#include <map>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "rdma_transport/device_use.h"

namespace rdma {
namespace {

// What pollers with the same options share, and how many there may be.
using Key = std::tuple<DeviceContext::Options, uint64_t, absl::Duration,
                       absl::Duration, uint32_t>;

struct Group {
  std::vector<std::weak_ptr<ClientPoller>> pollers;
  size_t next = 0;
};

struct Registry {
  absl::Mutex mutex;
  std::map<Key, Group> groups ABSL_GUARDED_BY(mutex);
};

Registry& GetRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

// A keeper cannot wait for its own end: a thread of its own does it then.
void Dispose(ClientPoller* poller) {
  if (poller->poller->IsKeeperThread()) {
    std::thread([poller] { delete poller; }).detach();
  } else {
    delete poller;
  }
}

}  // namespace

DeviceContext::Options DeviceOptionsOf(const rpc::TransportOptions& options) {
  return {options.device, options.memory_budget_bytes,
          options.allow_other_users, options.fabric.set_up_by_tcp};
}

Poller::Options PollerOptionsOf(const rpc::TransportOptions& options) {
  Poller::Options result;
  result.receive_budget_bytes = options.receive_budget_bytes;
  if (options.spin >= absl::ZeroDuration()) {
    result.spin = result.longest_spin = options.spin;
  }
  return result;
}

rpc::Limits TransportLimits() {
  rpc::Limits limits;
  limits.max_header_bytes = 8192;
  limits.copy_message_bytes = kCopyMessageBytes;
  limits.max_message_bytes = std::numeric_limits<int32_t>::max();  // protobuf's
  limits.max_attachment_bytes = uint64_t{1}
                                << 48;  // of an address, on the wire
  limits.stream_window_bytes = kStreamWindow;
  return limits;
}

absl::StatusOr<std::unique_ptr<ClientPoller>> ClientPoller::Create(
    std::shared_ptr<DeviceContext> context, const Poller::Options& options) {
  auto result = std::make_unique<ClientPoller>();
  absl::StatusOr<std::unique_ptr<Poller>> poller =
      Poller::Create(std::move(context), &result->delivery, options);
  if (!poller.ok()) return poller.status();
  result->poller = *std::move(poller);
  result->delivery.Init(result->poller.get());
  return result;
}

bool ClientPoller::Send(rpc::CallHandle handle, rpc::OutgoingFrame& frame) {
  return SendInLine(handle, frame);
}

void ClientPoller::HoldBack(Call& call, rpc::OutgoingFrame& frame) {
  if (!call.closed && !call.open_sent && !call.sent_end) call.HoldBack(frame);
}

void ClientPoller::Release(rpc::CallHandle handle, uint64_t window_bytes,
                           bool drained) {
  Call* const call = poller->calls().Find(handle);
  if (call == nullptr || call->connection == nullptr) return;
  call->connection->Release(*call, window_bytes, drained);
}

ClientPoller::~ClientPoller() {
  if (poller != nullptr) poller->Drain();
}

absl::StatusOr<std::shared_ptr<ClientPoller>> ClientPoller::Get(
    const rpc::TransportOptions& options) {
  const Poller::Options poller_options = PollerOptionsOf(options);
  const Key key = {DeviceOptionsOf(options),
                   poller_options.receive_budget_bytes, poller_options.spin,
                   poller_options.longest_spin, options.pollers};
  Registry& registry = GetRegistry();
  absl::MutexLock lock(&registry.mutex);
  Group& group = registry.groups[key];
  group.pollers.resize(options.pollers);
  std::weak_ptr<ClientPoller>& slot =
      group.pollers[group.next++ % group.pollers.size()];
  if (std::shared_ptr<ClientPoller> poller = slot.lock()) return poller;
  absl::StatusOr<std::shared_ptr<DeviceContext>> context =
      DeviceContext::Get(std::get<0>(key));
  if (!context.ok()) return context.status();
  absl::StatusOr<std::unique_ptr<ClientPoller>> created =
      Create(*std::move(context), poller_options);
  if (!created.ok()) return created.status();
  std::shared_ptr<ClientPoller> poller((*created).release(), Dispose);
  slot = poller;
  return poller;
}

}  // namespace rdma
