#include "tests/transport/connection_side.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace rdma::testing {

// Of all calls of a side, client's or server's.
class Side::Sink final : public rpc::CallSink {
 public:
  Sink(Side* side, rpc::CallHandle handle) : side_(side), handle_(handle) {}

  absl::Notification* blocked_until = nullptr;

 private:
  void OnFrame(rpc::IncomingFrame& frame) override {
    side_->OnStreamFrame(handle_, frame);
    if (blocked_until != nullptr) blocked_until->WaitForNotification();
  }
  bool OnOnlyMessage(std::string_view, rpc::Buffer*) override {
    if (!side_->takes_only_messages_) return false;
    ++side_->frames_;
    if (blocked_until != nullptr) blocked_until->WaitForNotification();
    OnClosed({});
    return true;
  }
  bool ParsesWhatArrives() const override { return side_->takes_arriving_ > 0; }
  void OnSent() override {
    if (blocked_until != nullptr) blocked_until->WaitForNotification();
    ++side_->sent_;
  }
  void OnClosed(const rpc::CallOutcome& outcome) override {
    if (outcome.status.ok()) {
      ++side_->answered_;
    } else {
      absl::MutexLock lock(&side_->mutex_);
      side_->last_failure_ = outcome.status;
      if (!outcome.may_have_run) ++side_->not_run_;
      ++side_->failed_;
    }
    delete this;
  }
  Side* const side_;
  const rpc::CallHandle handle_;
};

Side::Side(const Poller::Options& options, const Prepare& prepare,
           uint64_t memory_budget_bytes) {
  auto device = std::make_unique<MeddledDevice>();
  if (prepare != nullptr) prepare(*device);
  device_ = device.get();
  absl::StatusOr<std::shared_ptr<DeviceContext>> context =
      DeviceContext::Create(std::move(device), memory_budget_bytes);
  EXPECT_TRUE(context.ok()) << context.status();
  absl::StatusOr<std::unique_ptr<ClientPoller>> poller =
      ClientPoller::Create(*std::move(context), options);
  EXPECT_TRUE(poller.ok()) << poller.status();
  poller_ = *std::move(poller);
  poller_->delivery.SetServerSink(this);
  poller_->poller->StartKeepers();
}

Side::~Side() {
  CloseAll(absl::CancelledError("the test is over"));
  Do([this] {
    if (listener_ != nullptr) {
      poller().connection_manager().Destroy(listener_);
    }
  });
}

void Side::Do(absl::FunctionRef<void()> task) {
  absl::Notification done;
  poller().Run([&] {
    task();
    done.Notify();
  });
  done.WaitForNotification();
}

void Side::Listen() {
  Do([this] {
    absl::StatusOr<CmId*> id = poller().connection_manager().Listen(
        *SocketAddress::FromNumeric("127.0.0.1", 0), 512,
        static_cast<CmEventHandler*>(this));
    ASSERT_TRUE(id.ok()) << id.status();
    listener_ = *id;
    address_ = listener_->local_address();
  });
}

void Side::OnCmEvent(CmEvent& event) {
  if (event.type != CmEvent::Type::kConnectRequest) return;
  const absl::StatusOr<Connection*> connection =
      Connection::Accept(&poller(), &poller_->delivery, this, event, options_);
  if (connection.ok()) {
    connections_.push_back(*connection);
    return;
  }
  absl::MutexLock lock(&mutex_);
  last_refusal_ = connection.status();
}

void Side::OnConnectionDown(Connection& connection, const absl::Status& why,
                            bool) {
  connections_.erase(
      std::remove(connections_.begin(), connections_.end(), &connection),
      connections_.end());
  absl::MutexLock lock(&mutex_);
  last_down_ = why;
  ++down_;
}

absl::StatusOr<Connection*> Side::Connect(const SocketAddress& address) {
  absl::StatusOr<Connection*> connection = nullptr;
  Do([&] {
    connection = Connection::Connect(&poller(), &poller_->delivery, this,
                                     address, options_);
    if (connection.ok()) connections_.push_back(*connection);
  });
  return connection;
}

Connection* Side::ConnectTo(const Side& server) {
  const int before = up();
  const absl::StatusOr<Connection*> connection = Connect(server.address());
  EXPECT_TRUE(connection.ok()) << connection.status();
  EXPECT_TRUE(Eventually([&] { return up() > before; }));
  return connection.value_or(nullptr);
}

rpc::CallHandle Side::Open(Connection* connection, size_t bytes,
                           std::string_view path, uint32_t method, bool end) {
  rpc::CallHandle handle;
  Do([&] {
    if (std::find(connections_.begin(), connections_.end(), connection) ==
        connections_.end()) {
      return;
    }
    rdma::Call* const call = NewCall(path);
    handle = call->handle;
    call->method_index = method;
    const std::vector<std::byte> message(bytes);
    rpc::OutgoingFrame frame;
    frame.has_message = true;
    frame.small_message = message;
    frame.end = end;
    connection->OpenCall(*call, frame);
  });
  return handle;
}

rdma::Call* Side::NewCall(std::string_view path) {
  rdma::Call* const call = poller().calls().Create();
  call->owner = this;
  call->deadline = absl::InfiniteFuture();
  call->method_index = 0;
  auto* const sink = new Sink(this, call->handle);
  sink->blocked_until = blocked_until_;
  call->sink = sink;
  call->is_client = true;
  call->quick_sink = sink->blocked_until == nullptr;
  paths_.emplace_back(path);
  return call;
}

Side::Growing Side::Grow(std::string_view message, rpc::OutgoingFrame& frame) {
  const size_t bytes = message.size();
  Growing growing;
  growing.message = std::make_shared<GrowingMessage>(&poller(), nullptr, bytes);
  absl::StatusOr<rpc::Buffer> memory =
      poller().context().memory().Allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  growing.memory = *std::move(memory);
  std::memcpy(growing.memory.mutable_data(), message.data(), bytes);
  frame.has_message = true;
  frame.message.Append(growing.memory);
  frame.growing = growing.message;
  frame.end = true;
  return growing;
}

Side::Growing Side::OpenGrowing(Connection* connection, size_t bytes,
                                size_t written) {
  Growing growing;
  // Takes its time; the peer's READs complete behind SENDs that this side must
  // be there for.
  const std::string message = TestBytes(bytes);
  Do([&] {
    rpc::OutgoingFrame frame;
    growing = Grow(message, frame);
    growing.message->SetWritten(written);
    rdma::Call* const call = NewCall("/test.Test/Method");
    growing.call = call->handle;
    connection->OpenCall(*call, frame);
  });
  return growing;
}

Side::Growing Side::AnswerGrowing(std::string_view message,
                                  uint32_t status_code) {
  Growing growing;
  Do([&] {
    rpc::OutgoingFrame frame;
    growing = Grow(message, frame);
    frame.status_code = status_code;
    growing.call = TakeUnanswered();
    poller_->Send(growing.call, frame);
  });
  return growing;
}

std::string TestBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  }
  return bytes;
}

std::string Side::last_message() const {
  absl::MutexLock lock(&mutex_);
  return last_message_;
}

std::vector<size_t> Side::message_sizes() const {
  absl::MutexLock lock(&mutex_);
  return message_sizes_;
}

void Side::OnStreamFrame(rpc::CallHandle handle,
                         const rpc::IncomingFrame& frame) {
  std::string message = frame.arriving != nullptr
                            ? TakeArriving(*frame.arriving)
                            : frame.message.ToString();
  ++frames_;
  {
    absl::MutexLock lock(&mutex_);
    message_sizes_.push_back(message.size());
    last_message_ = std::move(message);
    if (frame.window_bytes == 0) return;
    if (!take_frames_) {
      untaken_.emplace_back(handle, frame.window_bytes);
      return;
    }
  }
  poller().Run([this, handle, bytes = frame.window_bytes] {
    poller_->Release(handle, bytes, /*drained=*/true);
  });
}

std::string Side::TakeArriving(rpc::ArrivingMessage& message) {
  constexpr size_t kMiB = 1 << 20;
  std::string bytes;
  bool in_place = false;
  while (bytes.size() < takes_arriving_) {
    const size_t before = bytes.size();
    const size_t rest = message.total_bytes() - before;
    size_t into = in_place && rest > 2 * kMiB ? kMiB + 1 : 0;
    if (in_place_from_ > 0) {
      into = before >= in_place_from_ ? rest : 0;
      if (into > 0) absl::SleepFor(absl::Milliseconds(20));
    }
    if (into > 0) {
      bytes.resize(before + into);
      const bool came = message.ReadInto(
          absl::MakeSpan(reinterpret_cast<std::byte*>(&bytes[before]), into));
      if (!came) {
        bytes.resize(before);
        break;
      }
    } else {
      const absl::Span<const std::byte> piece = message.Next();
      if (piece.empty()) break;
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    in_place = !in_place && message.can_read_into();
    arrived_bytes_ = bytes.size();
  }
  ++arrived_;
  return bytes;
}

void Side::TakeFrames(bool take) {
  std::vector<std::pair<rpc::CallHandle, uint64_t>> taken;
  {
    absl::MutexLock lock(&mutex_);
    take_frames_ = take;
    if (take) taken.swap(untaken_);
  }
  for (const auto& [handle, bytes] : taken) {
    poller().Run([this, handle = handle, bytes = bytes] {
      poller_->Release(handle, bytes, /*drained=*/false);
    });
  }
}

int64_t Side::window_size() {
  int64_t size = 0;
  Do([&] {
    poller().calls().ForEach(
        [&](rdma::Call& call) { size = call.window_size; });
  });
  return size;
}

void Side::SendMore(rpc::CallHandle handle, size_t bytes, bool end) {
  Do([&] {
    rdma::Call* const call = poller().calls().Find(handle);
    if (call == nullptr || call->connection == nullptr) return;
    const std::vector<std::byte> message(bytes);
    rpc::OutgoingFrame frame;
    frame.has_message = true;
    frame.small_message = message;
    frame.end = end;
    poller_->Send(handle, frame);
  });
}

rpc::CallSink* Side::OnCall(const Call& call, rpc::IncomingFrame& frame) {
  absl::Notification* const until = blocked_until_;
  const bool answer_at_once = answer_at_once_;
  if (!answer_at_once) {
    absl::MutexLock lock(&mutex_);
    unanswered_.push_back(call.handle);
  }
  ++opened_;  // from here on Answer answers it as well
  if (until != nullptr) until->WaitForNotification();
  // Who is answered at once finds the message counted.
  OnStreamFrame(call.handle, frame);
  if (answer_at_once) SendAnswer(call.handle);
  return new Sink(this, call.handle);
}

void Side::SendAnswer(rpc::CallHandle handle) {
  poller().Run([this, handle] {
    rdma::Call* const call = poller().calls().Find(handle);
    if (call == nullptr || call->connection == nullptr) return;
    rpc::OutgoingFrame frame;
    frame.has_message = true;
    frame.end = true;
    call->connection->SendData(*call, frame);
    const ReceivePool& pool = poller().receive_pool();
    least_spare_receives_ = std::min<int>(
        least_spare_receives_,
        static_cast<int>(pool.posted()) - static_cast<int>(pool.reserved()));
  });
}

rpc::CallHandle Side::TakeUnanswered() {
  absl::MutexLock lock(&mutex_);
  EXPECT_FALSE(unanswered_.empty());
  if (unanswered_.empty()) return {};
  const rpc::CallHandle oldest = unanswered_.front();
  unanswered_.erase(unanswered_.begin());
  return oldest;
}

void Side::AnswerOldest() { SendAnswer(TakeUnanswered()); }

void Side::Answer() {
  std::vector<rpc::CallHandle> handles;
  {
    absl::MutexLock lock(&mutex_);
    handles.swap(unanswered_);
  }
  for (const rpc::CallHandle handle : handles) SendAnswer(handle);
}

void Side::CloseAll(const absl::Status& why) {
  Do([&] {
    while (!connections_.empty()) connections_.back()->Close(why);
  });
}

void Side::CloseAllWhenFlushed() {
  for (Connection* const connection : connections_) {
    connection->CloseWhenFlushed(absl::UnavailableError("by the test"));
  }
}

void Side::ResetAll() {
  Do([&] {
    poller().calls().ForEach([](rdma::Call& call) {
      if (call.connection == nullptr) return;
      call.connection->ResetCall(call, absl::CancelledError("by the test"));
    });
  });
}

void Side::Reset(rpc::CallHandle handle) {
  Do([&] {
    rdma::Call* const call = poller().calls().Find(handle);
    if (call == nullptr || call->connection == nullptr) return;
    call->connection->ResetCall(*call, absl::CancelledError("by the test"));
  });
}

absl::Status Side::last_refusal() const {
  absl::MutexLock lock(&mutex_);
  return last_refusal_;
}

absl::Status Side::last_down() const {
  absl::MutexLock lock(&mutex_);
  return last_down_;
}

absl::Status Side::last_failure() const {
  absl::MutexLock lock(&mutex_);
  return last_failure_;
}

uint32_t Side::reserved() {
  uint32_t reserved = 0;
  Do([&] { reserved = poller().receive_pool().reserved(); });
  return reserved;
}

bool Eventually(const std::function<bool()>& condition,
                absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

bool AnotherCallIsAnswered(Side& client, Connection* connection, Side& server) {
  server.AnswerAtOnce(true);
  const int before = client.answered();
  client.Open(connection);
  const bool answered =
      Eventually([&] { return client.answered() == before + 1; });
  server.AnswerAtOnce(false);
  return answered;
}

}  // namespace rdma::testing
