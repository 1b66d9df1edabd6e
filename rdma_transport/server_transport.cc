#include "rdma_transport/server_transport.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rdma_transport/address.h"
#include "rdma_transport/device_choice.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// How long a peer can hold a shutdown up: one that does not close its
// connection, and then one that takes nothing.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(1);
constexpr absl::Duration kFlushTimeout = absl::Seconds(2);
// A port that is free on one device may be taken on another.
constexpr int kPortAttempts = 16;

}  // namespace

absl::StatusOr<std::unique_ptr<ServerTransport>> ServerTransport::Create(
    const rpc::TransportOptions& options) {
  std::unique_ptr<ServerTransport> transport =
      absl::WrapUnique(new ServerTransport(options));
  if (options.device != kAutoDevice) {
    const absl::Status status = transport->PollerFor(options.device).status();
    if (!status.ok()) return status;
  }
  return transport;
}

ServerTransport::ServerTransport(const rpc::TransportOptions& options)
    : options_(options), limits_(TransportLimits()) {}

ServerTransport::~ServerTransport() { Shutdown(absl::InfinitePast()); }

absl::StatusOr<ServerPoller*> ServerTransport::PollerFor(
    const std::string& device) {
  for (const DevicePoller& known : pollers_) {
    if (known.device == device) return known.poller.get();
  }
  const size_t first = pollers_.size();
  if (absl::Status status = AddPollers(device); !status.ok()) {
    pollers_.resize(first);
    return status;
  }
  ServerPoller* const listening = pollers_[first].poller.get();
  std::vector<ServerPoller*> others;
  for (size_t i = first + 1; i < pollers_.size(); ++i) {
    others.push_back(pollers_[i].poller.get());
  }
  listening->ShareClientsWith(std::move(others));
  return listening;
}

// Whether those that are not there yet fit in.
absl::Status ServerTransport::CheckPollersOf(
    const std::vector<std::string>& devices) const {
  size_t count = pollers_.size();
  for (const std::string& device : devices) {
    const bool known = std::any_of(
        pollers_.begin(), pollers_.end(),
        [&](const DevicePoller& each) { return each.device == device; });
    if (!known) count += options_.pollers;
  }
  if (count <= CallTable::kMaxPollers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a server has at most ", CallTable::kMaxPollers, " pollers, and with ",
      options_.pollers, " on each device (", absl::StrJoin(devices, ", "),
      ") it would have ", count,
      ": lower verbena.pollers, or name one device (verbena.device)"));
}

absl::Status ServerTransport::AddPollers(const std::string& device) {
  rpc::TransportOptions options = options_;
  options.device = device;
  for (uint32_t i = 0; i < options.pollers; ++i) {
    absl::StatusOr<std::unique_ptr<ServerPoller>> poller = ServerPoller::Create(
        options, static_cast<uint32_t>(pollers_.size()), &connections_);
    if (!poller.ok()) return poller.status();
    pollers_.push_back({device, *std::move(poller)});
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ServerTransport::AddListeningPort(
    std::string_view address) {
  const absl::StatusOr<HostPort> host_port = ParseAddress(address);
  if (!host_port.ok()) return host_port.status();
  const absl::StatusOr<std::vector<SocketAddress>> resolved =
      ResolveAddress(*host_port);
  if (!resolved.ok()) return resolved.status();
  const std::vector<std::string> devices =
      options_.device == kAutoDevice
          ? DevicesToListenWith(resolved->front(), options_.fabric)
          : std::vector<std::string>{options_.device};
  if (absl::Status status = CheckPollersOf(devices); !status.ok())
    return status;
  std::vector<ServerPoller*> pollers;
  for (const std::string& device : devices) {
    const absl::StatusOr<ServerPoller*> poller = PollerFor(device);
    if (poller.ok()) {
      pollers.push_back(*poller);
    } else if (options_.device != kAutoDevice || device == kSoftDevice) {
      return poller.status();
    } else {
      // Nobody asked for this one by name.
      rpc::Log(rpc::LogLevel::kWarning,
               absl::StrCat("not listening with ", device, ": ",
                            std::string(poller.status().message()),
                            " (rdma_info may tell more; verbena.device = "
                            "\"soft\" does without)"));
    }
  }
  return ListenOnAll(pollers, resolved->front());
}

// All devices at the same port, which the first one picks where that is asked
// for.
absl::StatusOr<int> ServerTransport::ListenOnAll(
    const std::vector<ServerPoller*>& pollers, SocketAddress address) {
  const bool any_port = address.port() == 0;
  absl::StatusOr<int> port = 0;
  for (int attempt = 0; attempt < (any_port ? kPortAttempts : 1); ++attempt) {
    if (any_port) address.set_port(0);
    size_t listening = 0;
    for (ServerPoller* const poller : pollers) {
      port = poller->Listen(address);
      if (!port.ok()) break;
      address.set_port(static_cast<uint16_t>(*port));
      ++listening;
    }
    if (port.ok()) return port;
    for (size_t i = 0; i < listening; ++i) pollers[i]->TakeBackListen();
    if (!absl::IsAlreadyExists(port.status()) || listening == 0) break;
  }
  return port;
}

absl::Status ServerTransport::Start(rpc::ServerSink* sink) {
  // Those that listen last: they share their clients out.
  for (auto each = pollers_.rbegin(); each != pollers_.rend(); ++each) {
    each->poller->Start(sink);
  }
  return absl::OkStatus();
}

bool ServerTransport::Send(rpc::CallHandle call, rpc::OutgoingFrame&& frame) {
  return PollerOf(call).Send(call, std::move(frame));
}

void ServerTransport::Release(rpc::CallHandle call, uint64_t window_bytes,
                              bool drained) {
  PollerOf(call).Release(call, window_bytes, drained);
}

void ServerTransport::Cancel(rpc::CallHandle call, absl::Status reason) {
  PollerOf(call).Cancel(call, std::move(reason));
}

ServerPoller* ServerTransport::PollerToDrive() {
  const size_t turn = waits_.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < pollers_.size(); ++i) {
    ServerPoller& poller = *pollers_[(turn + i) % pollers_.size()].poller;
    if (poller.load() > 0) return &poller;
  }
  return pollers_.empty() ? nullptr : pollers_.front().poller.get();
}

void ServerTransport::Wait(rpc::Event& event) {
  if (ServerPoller* const poller = PollerToDrive()) poller->Wait(event);
}

void ServerTransport::WakeWaiters() {
  for (const DevicePoller& each : pollers_) each.poller->WakeWaiters();
}

absl::StatusOr<rpc::Buffer> ServerTransport::AllocateBuffer(
    rpc::CallHandle call, size_t bytes) {
  return PollerOf(call).AllocateBuffer(bytes);
}

std::shared_ptr<rpc::GrowingMessage> ServerTransport::GrowMessage(
    rpc::CallHandle call, size_t bytes) {
  return PollerOf(call).GrowMessage(bytes);
}

std::string ServerTransport::device() const {
  std::vector<std::string> names;
  for (const DevicePoller& each : pollers_) {
    std::string name = each.poller->device();
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return absl::StrJoin(names, ", ");
}

void ServerTransport::Shutdown(absl::Time deadline) {
  absl::MutexLock lock(&shutdown_mutex_);
  if (std::exchange(shut_down_, true)) return;
  for (const DevicePoller& each : pollers_) each.poller->Refuse();
  for (const DevicePoller& each : pollers_) each.poller->WaitForCalls(deadline);
  for (const DevicePoller& each : pollers_) each.poller->CancelCalls();
  for (const DevicePoller& each : pollers_) {
    each.poller->WaitForCalls(absl::InfiniteFuture());
  }
  // What clients sent before they heard of it is refused until they have gone.
  const absl::Time left = absl::Now() + kLeaveTimeout;
  for (const DevicePoller& each : pollers_) each.poller->WaitForClients(left);
  // The last answers may still be on their way.
  const absl::Time flushed = absl::Now() + kFlushTimeout;
  for (const DevicePoller& each : pollers_) each.poller->Flush(flushed);
  for (const DevicePoller& each : pollers_) each.poller->Drain();
}

}  // namespace rdma
