#include "rdma_transport/server_transport.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "rdma_transport/address.h"
#include "rdma_transport/owned_frame.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

constexpr int kBacklog = 512;
// How long a peer that takes nothing can hold a shutdown up.
constexpr absl::Duration kFlushTimeout = absl::Seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<ServerTransport>> ServerTransport::Create(
    const rpc::TransportOptions& options) {
  absl::StatusOr<std::shared_ptr<DeviceContext>> context =
      DeviceContext::Get(DeviceOptionsOf(options));
  if (!context.ok()) return context.status();
  absl::StatusOr<std::unique_ptr<ClientPoller>> poller =
      ClientPoller::Create(*std::move(context), PollerOptionsOf(options));
  if (!poller.ok()) return poller.status();
  return absl::WrapUnique(new ServerTransport(*std::move(poller), options));
}

ServerTransport::ServerTransport(std::unique_ptr<ClientPoller> poller,
                                 const rpc::TransportOptions& options)
    : options_(options),
      limits_(LimitsOf(PollerOptionsOf(options))),
      poller_(std::move(poller)) {}

ServerTransport::~ServerTransport() { Shutdown(absl::InfinitePast()); }

absl::StatusOr<int> ServerTransport::AddListeningPort(
    std::string_view address) {
  const absl::StatusOr<HostPort> host_port = ParseAddress(address);
  if (!host_port.ok()) return host_port.status();
  absl::StatusOr<std::vector<SocketAddress>> resolved =
      ResolveAddress(*host_port);
  if (!resolved.ok()) return resolved.status();

  absl::StatusOr<int> port = absl::InternalError("not run");
  absl::Notification done;
  poller_->poller->Run([&] {
    const absl::StatusOr<CmId*> id =
        poller_->poller->connection_manager().Listen(
            resolved->front(), kBacklog, static_cast<CmEventHandler*>(this));
    if (id.ok()) {
      listeners_.push_back(*id);
      port = (*id)->local_address().port();
    } else {
      port = id.status();
    }
    done.Notify();
  });
  done.WaitForNotification();
  return port;
}

absl::Status ServerTransport::Start(rpc::ServerSink* sink) {
  poller_->poller->Run([this, sink] {
    sink_ = sink;
    poller_->delivery.SetServerSink(sink);
  });
  poller_->poller->StartKeepers();
  return absl::OkStatus();
}

// ---- Connections.

void ServerTransport::OnCmEvent(CmEvent& event) {
  if (event.type == CmEvent::Type::kConnectRequest) {
    OnConnectRequest(event);
  } else if (event.type == CmEvent::Type::kListenFailed) {
    rpc::Log(rpc::LogLevel::kError, event.status.ToString());
  }
}

void ServerTransport::OnConnectRequest(const CmEvent& event) {
  ConnectionManager& cm = poller_->poller->connection_manager();
  if (sink_ == nullptr || connections_.size() >= options_.max_connections) {
    const std::string reason =
        sink_ == nullptr
            ? "the server has not started yet"
            : absl::StrCat("the server has its limit of ",
                           options_.max_connections, " connections");
    rpc::Log(rpc::LogLevel::kWarning,
             absl::StrCat("connection rejected: ", reason));
    cm.Reject(event.id, reason).IgnoreError();
    cm.Destroy(event.id);
    return;
  }
  const absl::StatusOr<Connection*> connection = Connection::Accept(
      poller_->poller.get(), &poller_->delivery, this, event, options_);
  if (connection.ok()) {
    connections_.insert(*connection);
  } else {
    rpc::Log(rpc::LogLevel::kWarning,
             absl::StrCat("connection rejected: ",
                          std::string(connection.status().message())));
  }
}

void ServerTransport::OnConnectionDown(Connection& connection,
                                       const absl::Status& why, bool) {
  connections_.erase(&connection);
  if (all_gone_ != nullptr && connections_.empty()) {
    poller_->poller->SetEvent(*std::exchange(all_gone_, nullptr));
  }
  rpc::Log(rpc::LogLevel::kInfo,
           absl::StrCat("connection of ", connection.peer(),
                        " closed: ", std::string(why.message())));
}

// ---- Calls.

const void* ServerTransport::OnMethod(std::string_view path) {
  return sink_->OnMethod(path);
}

void ServerTransport::OnCallDeadline(Call& call) {
  if (call.connection == nullptr) return;
  call.connection->ResetCall(call,
                             absl::DeadlineExceededError("Deadline Exceeded"));
}

void ServerTransport::OnCallRefused(Call& call) {
  const absl::Status why = absl::UnimplementedError("");
  if (call.connection != nullptr) {
    call.connection->ResetCall(call, why, /*not_run=*/true);
  } else {
    poller_->delivery.Close(call, {why, false});
  }
}

void ServerTransport::Send(rpc::CallHandle handle, rpc::OutgoingFrame frame) {
  Poller& poller = *poller_->poller;
  const auto send = [&poller, handle](rpc::OutgoingFrame& outgoing) {
    Call* const call = poller.calls().Find(handle);
    if (call != nullptr && call->connection != nullptr) {
      call->connection->SendData(*call, outgoing);
    }
  };
  if (poller.RunNow([&] { send(frame); })) return;
  poller.Run([send, owned = std::make_unique<OwnedFrame>(std::move(frame))] {
    send(owned->get());
  });
}

void ServerTransport::Cancel(rpc::CallHandle handle, absl::Status reason) {
  poller_->poller->Run([this, handle, reason = std::move(reason)] {
    Call* const call = poller_->poller->calls().Find(handle);
    if (call != nullptr && call->connection != nullptr) {
      call->connection->ResetCall(*call, reason);
    }
  });
}

absl::StatusOr<rpc::Buffer> ServerTransport::AllocateBuffer(size_t bytes) {
  return poller_->poller->context().memory().Allocate(bytes);
}

std::string ServerTransport::device() const {
  return std::string(poller_->poller->context().device()->name());
}

// ---- Shutting down.

void ServerTransport::StopListening() {
  for (CmId* const listener : std::exchange(listeners_, {})) {
    poller_->poller->connection_manager().Destroy(listener);
  }
}

// Has `arrange` see to it that `event` is set, and waits until then or until
// the deadline.
void ServerTransport::WaitFor(rpc::Event& event, absl::Time deadline,
                              absl::FunctionRef<void()> arrange) {
  Poller& poller = *poller_->poller;
  DrainTimer timer(&poller, &event);
  poller.Run([&] {
    arrange();
    if (deadline == absl::InfiniteFuture() || event.is_set()) return;
    constexpr absl::Duration kLongest = absl::Hours(24 * 365);
    const absl::Duration left =
        std::clamp(deadline - absl::Now(), absl::ZeroDuration(), kLongest);
    poller.Schedule(&timer, Poller::NowNs() + absl::ToInt64Nanoseconds(left));
  });
  poller.Wait(event);
  absl::Notification forgotten;
  poller.Run([&] {
    poller_->delivery.ForgetDrained();
    all_gone_ = nullptr;
    poller.timers().Cancel(&timer);
    forgotten.Notify();
  });
  forgotten.WaitForNotification();
}

void ServerTransport::WaitForCalls(absl::Time deadline) {
  rpc::Event drained;
  WaitFor(drained, deadline,
          [&] { poller_->delivery.NotifyWhenDrained(&drained); });
}

void ServerTransport::WaitForConnections(absl::Time deadline) {
  rpc::Event gone;
  WaitFor(gone, deadline, [this, &gone] {
    if (connections_.empty()) {
      gone.Set();
    } else {
      all_gone_ = &gone;
    }
  });
}

void ServerTransport::CancelCalls() {
  const absl::Status why =
      absl::UnavailableError("the server was shut down while the call ran");
  std::vector<Call*> running;
  poller_->poller->calls().ForEach([&](Call& call) {
    if (call.connection != nullptr) running.push_back(&call);
  });
  for (Call* const call : running) {
    if (call->connection != nullptr) call->connection->ResetCall(*call, why);
  }
}

void ServerTransport::Shutdown(absl::Time deadline) {
  absl::MutexLock lock(&shutdown_mutex_);
  if (std::exchange(shut_down_, true)) return;
  Poller& poller = *poller_->poller;
  poller.Run([this] {
    StopListening();
    for (Connection* const connection : connections_) connection->SendGoAway();
  });
  WaitForCalls(deadline);
  poller.Run([this] { CancelCalls(); });
  WaitForCalls(absl::InfiniteFuture());
  // The last answers may still be on their way.
  const absl::Status why = absl::UnavailableError("the server is shut down");
  poller.Run([&] {
    const std::vector<Connection*> connections(connections_.begin(),
                                               connections_.end());
    for (Connection* const connection : connections) {
      connection->CloseWhenFlushed(why);
    }
  });
  WaitForConnections(absl::Now() + kFlushTimeout);
  poller.Run([&] {
    while (!connections_.empty()) (*connections_.begin())->Close(why);
  });
  poller.Drain();
}

}  // namespace rdma
