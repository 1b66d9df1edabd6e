#include "rdma_transport/server_poller.h"

#include <algorithm>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "rdma_transport/growing_message.h"
#include "rdma_transport/owned_frame.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

constexpr int kBacklog = 512;
constexpr char kGone[] = "the server is shut down";

}  // namespace

absl::StatusOr<std::unique_ptr<ServerPoller>> ServerPoller::Create(
    const rpc::TransportOptions& options, uint32_t number,
    std::atomic<uint32_t>* connections) {
  absl::StatusOr<std::shared_ptr<DeviceContext>> context =
      DeviceContext::Get(DeviceOptionsOf(options));
  if (!context.ok()) return context.status();
  Poller::Options poller_options = PollerOptionsOf(options);
  poller_options.number = number;
  absl::StatusOr<std::unique_ptr<ClientPoller>> poller =
      ClientPoller::Create(*std::move(context), poller_options);
  if (!poller.ok()) return poller.status();
  return absl::WrapUnique(
      new ServerPoller(*std::move(poller), options, number, connections));
}

ServerPoller::ServerPoller(std::unique_ptr<ClientPoller> poller,
                           const rpc::TransportOptions& options,
                           uint32_t number, std::atomic<uint32_t>* connections)
    : options_(options),
      number_(number),
      poller_(std::move(poller)),
      connection_count_(connections) {}

absl::StatusOr<int> ServerPoller::Listen(const SocketAddress& address) {
  absl::StatusOr<int> port = absl::InternalError("not run");
  absl::Notification done;
  poller_->poller->Run([&] {
    const absl::StatusOr<CmId*> id =
        poller_->poller->connection_manager().Listen(
            address, kBacklog, static_cast<CmEventHandler*>(this));
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

void ServerPoller::Start(rpc::ServerSink* sink) {
  poller_->poller->Run([this, sink] {
    sink_ = sink;
    poller_->delivery.SetServerSink(sink);
  });
  poller_->poller->StartKeepers();
  started_ = true;
}

// ---- Connections.

void ServerPoller::OnCmEvent(CmEvent& event) {
  if (event.type == CmEvent::Type::kConnectRequest) {
    OnConnectRequest(event);
  } else if (event.type == CmEvent::Type::kListenFailed) {
    rpc::Log(rpc::LogLevel::kError, event.status.ToString());
  }
}

void ServerPoller::OnConnectRequest(CmEvent& event) {
  ServerPoller& poller = LeastLoaded();
  poller.load_.fetch_add(1);
  if (&poller == this) {
    Answer(event);
  } else {
    HandOver(event, poller);
  }
}

ServerPoller& ServerPoller::LeastLoaded() {
  const auto rank = [](const ServerPoller& poller) {
    return std::pair(poller.full_.load(), poller.load_.load());
  };
  ServerPoller* least = this;
  for (ServerPoller* const other : others_) {
    if (rank(*other) < rank(*least)) least = other;
  }
  return *least;
}

// Its connection manager gets the client's id with it.
void ServerPoller::HandOver(const CmEvent& event, ServerPoller& to) {
  absl::StatusOr<std::unique_ptr<CmId>> released =
      poller_->poller->connection_manager().Release(event.id);
  if (!released.ok()) {
    static auto* const limiter = new rpc::LogLimiter(absl::Seconds(10));
    if (limiter->Allow()) {
      rpc::Log(rpc::LogLevel::kWarning,
               absl::StrCat("a connection stays with the poller that listens: ",
                            std::string(released.status().message())));
    }
    to.load_.fetch_sub(1);
    load_.fetch_add(1);
    Answer(event);
    return;
  }
  to.poller_->poller->RunElsewhere(
      [&to, event, released = *std::move(released)]() mutable {
        to.AnswerReleased(std::move(event), std::move(released));
      });
}

void ServerPoller::AnswerReleased(CmEvent event,
                                  std::unique_ptr<CmId> released) {
  const absl::StatusOr<CmId*> id =
      poller_->poller->connection_manager().Adopt(std::move(released));
  if (!id.ok()) {
    load_.fetch_sub(1);
    rpc::Log(rpc::LogLevel::kWarning,
             absl::StrCat("connection rejected: ",
                          std::string(id.status().message())));
    return;
  }
  event.id = *id;
  Answer(event);
}

// Other pollers of the server accept at the same time.
bool ServerPoller::TakeConnectionSlot() {
  uint32_t count = connection_count_->load();
  while (count < options_.max_connections) {
    if (connection_count_->compare_exchange_weak(count, count + 1)) return true;
  }
  return false;
}

void ServerPoller::Answer(const CmEvent& event) {
  ConnectionManager& cm = poller_->poller->connection_manager();
  std::string reason;
  if (sink_ == nullptr) {
    reason = "the server has not started yet";
  } else if (refusing_) {
    reason = kGone;
  } else if (!TakeConnectionSlot()) {
    reason = absl::StrCat("the server has its limit of ",
                          options_.max_connections, " connections");
  }
  if (!reason.empty()) {
    load_.fetch_sub(1);
    rpc::Log(rpc::LogLevel::kWarning,
             absl::StrCat("connection rejected: ", reason));
    cm.Reject(event.id, reason).IgnoreError();
    cm.Destroy(event.id);
    return;
  }
  const absl::StatusOr<Connection*> connection = Connection::Accept(
      poller_->poller.get(), &poller_->delivery, this, event, options_);
  if (connection.ok()) {
    Add(*connection);
    full_ = false;
  } else {
    full_ = absl::IsResourceExhausted(connection.status()) ||
            !poller_->poller->failure().ok();
    load_.fetch_sub(1);
    connection_count_->fetch_sub(1);
    rpc::Log(rpc::LogLevel::kWarning,
             absl::StrCat("connection rejected: ",
                          std::string(connection.status().message())));
  }
}

void ServerPoller::Add(Connection* connection) {
  std::unique_ptr<ConnectionLifetime>& lifetime = connections_[connection];
  const auto limits = ConnectionLifetime::LimitsOf(options_, random_);
  if (!limits.any()) return;
  lifetime = std::make_unique<ConnectionLifetime>(poller_->poller.get(),
                                                  connection, limits);
}

// To go through them though some go meanwhile: one whose post fails is gone at
// once.
std::vector<Connection*> ServerPoller::Connections() const {
  std::vector<Connection*> connections;
  for (const auto& [connection, lifetime] : connections_) {
    connections.push_back(connection);
  }
  return connections;
}

void ServerPoller::OnConnectionDown(Connection& connection,
                                    const absl::Status& why, bool) {
  const auto gone = static_cast<uint32_t>(connections_.erase(&connection));
  load_.fetch_sub(gone);
  full_ = false;
  connection_count_->fetch_sub(gone);
  if (all_gone_ != nullptr && connections_.empty()) {
    poller_->poller->SetEvent(*std::exchange(all_gone_, nullptr));
  }
  rpc::Log(rpc::LogLevel::kInfo,
           absl::StrCat("connection of ", connection.peer(),
                        " closed: ", std::string(why.message())));
}

// ---- Calls.

const void* ServerPoller::OnMethod(std::string_view path) {
  return sink_->OnMethod(path, number_);
}

void ServerPoller::OnCallDeadline(Call& call) {
  if (call.connection == nullptr) return;
  call.connection->ResetCall(call,
                             absl::DeadlineExceededError("Deadline Exceeded"));
}

void ServerPoller::OnCallRefused(Call& call) {
  const absl::Status why = absl::UnimplementedError("");
  if (call.connection != nullptr) {
    call.connection->ResetCall(call, why, /*not_run=*/true);
  } else {
    poller_->delivery.Close(call, {why, false});
  }
}

// Flat: as Endpoint::StartCall.
[[gnu::flatten]] bool ServerPoller::Send(rpc::CallHandle handle,
                                         rpc::OutgoingFrame&& frame) {
  Poller& poller = *poller_->poller;
  bool sent = false;
  const auto send = [&] { sent = poller_->SendInLine(handle, frame); };
  if (poller.RunNow(send, /*stay=*/frame.last_act)) [[likely]]
    return sent;
  SendElsewhere(handle, frame);
  return false;
}

// On the thread that drives.
ABSL_ATTRIBUTE_NOINLINE void ServerPoller::SendElsewhere(
    rpc::CallHandle handle, rpc::OutgoingFrame& frame) {
  poller_->poller->Run(
      [this, handle, owned = std::make_unique<OwnedFrame>(std::move(frame))] {
        poller_->Send(handle, owned->get());
      });
}

void ServerPoller::Release(rpc::CallHandle handle, uint64_t window_bytes,
                           bool drained) {
  poller_->poller->Run([this, handle, window_bytes, drained] {
    poller_->Release(handle, window_bytes, drained);
  });
}

void ServerPoller::Cancel(rpc::CallHandle handle, absl::Status reason) {
  poller_->poller->Run([this, handle, reason = std::move(reason)] {
    Call* const call = poller_->poller->calls().Find(handle);
    if (call != nullptr && call->connection != nullptr) {
      call->connection->ResetCall(*call, reason);
    }
  });
}

absl::StatusOr<rpc::Buffer> ServerPoller::AllocateBuffer(size_t bytes) {
  return poller_->poller->context().memory().Allocate(bytes);
}

// The server's pollers outlive its calls.
std::shared_ptr<rpc::GrowingMessage> ServerPoller::GrowMessage(size_t bytes) {
  return rdma::GrowMessage(*poller_->poller, Sender::kServer, nullptr, bytes);
}

std::string ServerPoller::device() const {
  return std::string(poller_->poller->context().device()->name());
}

// ---- Shutting down.

void ServerPoller::TakeBackListen() {
  absl::Notification done;
  poller_->poller->Run([&] {
    poller_->poller->connection_manager().Destroy(listeners_.back());
    listeners_.pop_back();
    done.Notify();
  });
  done.WaitForNotification();
}

// Has `arrange` see to it that `event` is set, and waits until then or until
// the deadline.
void ServerPoller::WaitFor(rpc::Event& event, absl::Time deadline,
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
  // The keepers drive: a handler that is called now may wait for this thread to
  // cancel its call.
  if (started_) {
    event.WaitUntil(absl::InfiniteFuture());
  } else {
    poller.Wait(event);
  }
  absl::Notification forgotten;
  poller.Run([&] {
    poller_->delivery.ForgetDrained();
    all_gone_ = nullptr;
    poller.timers().Cancel(&timer);
    forgotten.Notify();
  });
  forgotten.WaitForNotification();
}

void ServerPoller::WaitForCalls(absl::Time deadline) {
  rpc::Event drained;
  WaitFor(drained, deadline,
          [&] { poller_->delivery.NotifyWhenDrained(&drained); });
}

void ServerPoller::CancelCalls() {
  poller_->poller->Run([this] {
    const absl::Status why =
        absl::UnavailableError("the server was shut down while the call ran");
    std::vector<Call*> running;
    poller_->poller->calls().ForEach([&](Call& call) {
      if (call.connection != nullptr) running.push_back(&call);
    });
    for (Call* const call : running) {
      if (call->connection != nullptr) call->connection->ResetCall(*call, why);
    }
  });
}

void ServerPoller::Refuse() {
  poller_->poller->Run([this] {
    refusing_ = true;
    for (CmId* const listener : std::exchange(listeners_, {})) {
      poller_->poller->connection_manager().Destroy(listener);
    }
    for (Connection* const connection : Connections()) {
      connection->RefuseCalls();
    }
  });
}

// Where this side closed first, a call that was on its way would be lost, and
// its client could not know that it did not run.
void ServerPoller::WaitForClients(absl::Time deadline) {
  rpc::Event gone;
  WaitFor(gone, deadline, [this, &gone] {
    if (connections_.empty()) {
      gone.Set();
    } else {
      all_gone_ = &gone;
    }
  });
}

void ServerPoller::Flush(absl::Time deadline) {
  poller_->poller->Run([this] {
    for (Connection* const connection : Connections()) {
      connection->CloseWhenFlushed(absl::UnavailableError(kGone));
    }
  });
  WaitForClients(deadline);
}

void ServerPoller::Drain() {
  poller_->poller->TurnGuestsOut();
  poller_->poller->Run([this] {
    while (!connections_.empty()) {
      connections_.begin()->first->Close(absl::UnavailableError(kGone));
    }
  });
  poller_->poller->Drain();
}

}  // namespace rdma
