#include "tests/rpc/routing/fake_transports.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rpc/routing/routing_transport.h"

namespace rpc::routing {
namespace {

constexpr std::string_view kScheme = "fake://";

// Of the test that runs; the factory is the process's.
std::deque<FakeTransport>* current_transports = nullptr;

SentFrame Record(const OutgoingFrame& frame) {
  const auto text = [](absl::Span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
  };
  return {text(frame.header),
          text(frame.small_message) + frame.message.ToString(),
          frame.attachment.size(), frame.end};
}

}  // namespace

class FakeClient final : public ClientTransport {
 public:
  FakeClient(FakeTransport* fake, std::string peer)
      : fake_(*fake), peer_(std::move(peer)) {
    ++fake_.clients_;
  }
  ~FakeClient() override { --fake_.clients_; }

  const Limits& limits() const override { return limits_; }
  uint32_t RegisterMethod(std::string_view path) override {
    paths_.emplace_back(path);
    return static_cast<uint32_t>(paths_.size() + 100);
  }
  CallHandle StartCall(const CallOptions& options, OutgoingFrame&& frame,
                       CallSink* sink) override {
    FakeCall* call;
    size_t number;
    std::function<void(FakeCall&)> run;
    {
      absl::MutexLock lock(&fake_.mutex_);
      number = fake_.calls_.size() + 1;
      call = &fake_.calls_.emplace_back();
      *call = {.options = options, .frames = {Record(frame)}, .sink = sink};
      run = std::exchange(fake_.on_next_start_, nullptr);
    }
    if (run != nullptr) run(*call);
    return {number};
  }
  bool Send(CallHandle handle, OutgoingFrame&& frame) override {
    absl::MutexLock lock(&fake_.mutex_);
    fake_.calls_[handle.value - 1].frames.push_back(Record(frame));
    return frame.sent_by_result && fake_.sent_at_once_;
  }
  void Release(CallHandle handle, uint64_t window_bytes, bool) override {
    absl::MutexLock lock(&fake_.mutex_);
    fake_.calls_[handle.value - 1].released_bytes += window_bytes;
  }
  void Cancel(CallHandle handle, absl::Status reason) override {
    CallSink* sink;
    {
      absl::MutexLock lock(&fake_.mutex_);
      FakeCall& call = fake_.calls_[handle.value - 1];
      call.cancelled.push_back(reason);
      sink = std::exchange(call.sink, nullptr);
    }
    if (sink != nullptr) sink->OnClosed({std::move(reason), true});
  }
  void Wait(Event& event) override { event.WaitUntil(absl::InfiniteFuture()); }
  void WakeWaiters() override {}
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return Buffer::FromHeap(bytes);
  }
  ConnectivityState GetState(bool try_to_connect) override {
    absl::MutexLock lock(&fake_.mutex_);
    if (try_to_connect) ++fake_.connects_;
    return fake_.state_;
  }
  bool WaitForStateChange(ConnectivityState, absl::Time) override {
    return false;
  }
  void AddStateListener(StateListener* listener) override {
    absl::MutexLock lock(&fake_.mutex_);
    fake_.listeners_.push_back(listener);
    if (!fake_.why_.ok()) listener->OnState(fake_.state_, fake_.why_);
  }
  void RemoveStateListener(StateListener* listener) override {
    absl::MutexLock lock(&fake_.mutex_);
    std::erase(fake_.listeners_, listener);
  }
  std::string device() const override { return "fake"; }
  std::string peer() const override { return peer_; }

 private:
  FakeTransport& fake_;
  const std::string peer_;
  const Limits limits_ = {.max_header_bytes = 8192};
  std::vector<std::string> paths_;
};

namespace {

class FakeFactory final : public TransportFactory {
 public:
  std::string_view scheme() const override { return "fake"; }
  absl::StatusOr<std::unique_ptr<ClientTransport>> CreateClient(
      std::string_view address, const TransportOptions&) override {
    size_t index;
    address.remove_prefix(kScheme.size());
    address = address.substr(0, address.find('.'));  // of a name
    if (!absl::SimpleAtoi(std::string(address), &index)) {
      return absl::InvalidArgumentError("no fake has this number");
    }
    return std::make_unique<FakeClient>(&(*current_transports)[index],
                                        absl::StrCat("fake:", index));
  }
  absl::StatusOr<std::unique_ptr<ServerTransport>> CreateServer(
      const TransportOptions&) override {
    return absl::UnimplementedError("fakes have no servers");
  }
};

}  // namespace

void FakeTransport::SetState(ConnectivityState state, const std::string& why) {
  absl::MutexLock lock(&mutex_);
  state_ = state;
  why_ = why.empty() ? absl::OkStatus() : absl::UnavailableError(why);
  for (StateListener* const listener : listeners_) {
    listener->OnState(state, why_);
  }
}

int FakeTransport::connects() const {
  absl::MutexLock lock(&mutex_);
  return connects_;
}

FakeCall& FakeTransport::WaitForCall(size_t number, size_t frames) {
  absl::MutexLock lock(&mutex_);
  const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.size() > number && calls_[number].frames.size() >= frames;
  };
  EXPECT_TRUE(
      mutex_.AwaitWithTimeout(absl::Condition(&came), absl::Seconds(20)));
  return calls_.at(number);
}

size_t FakeTransport::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_.size();
}

void FakeTransport::OnNextStart(std::function<void(FakeCall&)> run) {
  absl::MutexLock lock(&mutex_);
  on_next_start_ = std::move(run);
}

FakeTransports::FakeTransports(size_t count) : transports_(count) {
  static auto* const factory = [] {
    auto* const made = new FakeFactory();
    TransportFactory::Register(made);
    return made;
  }();
  (void)factory;
  current_transports = &transports_;
}

FakeTransports::~FakeTransports() { current_transports = nullptr; }

std::string FakeTransports::address() const {
  std::string address(kScheme);
  for (size_t i = 0; i < transports_.size(); ++i) {
    absl::StrAppend(&address, i == 0 ? "" : ",", i);
  }
  return address;
}

std::unique_ptr<ClientTransport> FakeTransports::Route(
    const RoutingOptions& options) {
  absl::StatusOr<std::unique_ptr<ClientTransport>> routing =
      CreateRoutingTransport(address(), TransportOptions(), options);
  EXPECT_TRUE(routing.ok()) << routing.status();
  EXPECT_EQ((*routing)->RegisterMethod("/fake.Service/Method"), 0u);
  return *std::move(routing);
}

std::unique_ptr<ClientTransport> FakeTransports::RouteName(
    const RoutingOptions& options, const NameResolver& resolve_name) {
  absl::StatusOr<std::unique_ptr<ClientTransport>> routing =
      CreateRoutingTransport("fake://0.name:1", TransportOptions(), options,
                             resolve_name);
  EXPECT_TRUE(routing.ok()) << routing.status();
  EXPECT_EQ((*routing)->RegisterMethod("/fake.Service/Method"), 0u);
  return *std::move(routing);
}

void FakeSink::OnFrame(IncomingFrame& frame) {
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(ends_, 0);
  if (frame.has_message) messages_.push_back(frame.message.ToString());
  if (frame.end) codes_.push_back(frame.status_code);
}

void FakeSink::OnPeer(std::string_view peer) {
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(ends_, 0);
  EXPECT_EQ(peer_, "");
  peer_ = std::string(peer);
}

void FakeSink::OnSent() {
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(ends_, 0);
  ++sent_;
}

void FakeSink::OnClosed(const CallOutcome& outcome) {
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(ends_, 0);
  outcome_ = outcome;
  ++ends_;
}

CallOutcome FakeSink::WaitForEnd() {
  absl::MutexLock lock(&mutex_);
  const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ends_ > 0;
  };
  EXPECT_TRUE(
      mutex_.AwaitWithTimeout(absl::Condition(&over), absl::Seconds(20)));
  return outcome_;
}

bool FakeSink::is_over() const {
  absl::MutexLock lock(&mutex_);
  return ends_ > 0;
}

int FakeSink::sent() const {
  absl::MutexLock lock(&mutex_);
  return sent_;
}

std::vector<std::string> FakeSink::messages() const {
  absl::MutexLock lock(&mutex_);
  return messages_;
}

std::vector<uint32_t> FakeSink::codes() const {
  absl::MutexLock lock(&mutex_);
  return codes_;
}

std::string FakeSink::peer() const {
  absl::MutexLock lock(&mutex_);
  return peer_;
}

OutgoingFrame Message(std::string_view text, bool end) {
  OutgoingFrame frame;
  frame.has_message = true;
  frame.small_message = {reinterpret_cast<const std::byte*>(text.data()),
                         text.size()};
  frame.end = end;
  return frame;
}

void Answer(FakeCall& call, const std::string& message) {
  CallSink* const sink = std::exchange(call.sink, nullptr);
  IncomingFrame frame;
  frame.has_message = true;
  frame.message = BufferChain(Buffer::CopyOf(message));
  frame.end = true;
  sink->OnFrame(frame);
  sink->OnClosed({absl::OkStatus(), true});
}

void Fail(FakeCall& call, uint32_t code, const std::string& header) {
  CallSink* const sink = std::exchange(call.sink, nullptr);
  IncomingFrame frame;
  frame.header = {reinterpret_cast<const std::byte*>(header.data()),
                  header.size()};
  frame.end = true;
  frame.status_code = code;
  sink->OnFrame(frame);
  sink->OnClosed({absl::OkStatus(), true});
}

void Break(FakeCall& call, const absl::Status& why, bool may_have_run) {
  std::exchange(call.sink, nullptr)->OnClosed({why, may_have_run});
}

}  // namespace rpc::routing
