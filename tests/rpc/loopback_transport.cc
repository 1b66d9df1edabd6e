#include "tests/rpc/loopback_transport.h"

#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/rpc/loopback_network.h"

namespace rpc::testing {
namespace {

using NetworkPtr = std::shared_ptr<LoopbackNetwork::Impl>;

class LoopbackClient final : public ClientTransport {
 public:
  explicit LoopbackClient(NetworkPtr network) : network_(std::move(network)) {}

  const Limits& limits() const override { return network_->options().limits; }
  uint32_t RegisterMethod(std::string_view path) override {
    return network_->RegisterMethod(path);
  }
  CallHandle StartCall(const CallOptions& options, OutgoingFrame&& frame,
                       CallSink* sink) override {
    return network_->StartCall(options, std::move(frame), sink);
  }
  bool Send(CallHandle call, OutgoingFrame&& frame) override {
    network_->Send(call, /*from_server=*/false, std::move(frame));
    return false;
  }
  void Release(CallHandle, uint64_t, bool) override {}
  void Cancel(CallHandle call, absl::Status reason) override {
    network_->Cancel(call, /*from_server=*/false, std::move(reason));
  }
  void Wait(Event& event) override { event.WaitUntil(absl::InfiniteFuture()); }
  void WakeWaiters() override {}
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return network_->memory().Allocate(bytes);
  }
  ConnectivityState GetState(bool try_to_connect) override {
    return network_->GetState(try_to_connect);
  }
  bool WaitForStateChange(ConnectivityState last_observed,
                          absl::Time deadline) override {
    return network_->WaitForStateChange(last_observed, deadline);
  }
  std::string device() const override { return "loopback"; }
  std::string peer() const override { return "ipv4:127.0.0.1:50051"; }

 private:
  const NetworkPtr network_;
};

class LoopbackServer final : public ServerTransport {
 public:
  ~LoopbackServer() override { Shutdown(absl::InfinitePast()); }

  const Limits& limits() const override { return network_->options().limits; }
  absl::StatusOr<int> AddListeningPort(std::string_view address) override;
  absl::Status Start(ServerSink* sink) override {
    if (network_->SetServer(this, sink)) return absl::OkStatus();
    return absl::AlreadyExistsError("another server listens");
  }
  bool Send(CallHandle call, OutgoingFrame&& frame) override {
    const LoopbackOptions& options = network_->options();
    if (options.before_server_sends != nullptr) options.before_server_sends();
    absl::SleepFor(options.send_time);
    network_->Send(call, /*from_server=*/true, std::move(frame));
    return false;
  }
  void Release(CallHandle, uint64_t, bool) override {}
  void Cancel(CallHandle call, absl::Status reason) override {
    network_->Cancel(call, /*from_server=*/true, std::move(reason));
  }
  absl::StatusOr<Buffer> AllocateBuffer(CallHandle, size_t bytes) override {
    return network_->memory().Allocate(bytes);
  }
  void Shutdown(absl::Time deadline) override {
    if (network_ != nullptr) network_->Shutdown(this, deadline);
  }
  std::string device() const override { return "loopback"; }

 private:
  NetworkPtr network_;
};

class LoopbackFactory final : public TransportFactory {
 public:
  static LoopbackFactory& Get() {
    static auto* const factory = [] {
      auto* const made = new LoopbackFactory();
      Register(made);
      return made;
    }();
    return *factory;
  }

  std::string_view scheme() const override { return "loopback"; }
  absl::StatusOr<std::unique_ptr<ClientTransport>> CreateClient(
      std::string_view address, const TransportOptions& options) override {
    absl::StatusOr<NetworkPtr> network = Find(address);
    if (!network.ok()) return network.status();
    return std::make_unique<LoopbackClient>(*std::move(network));
  }
  absl::StatusOr<std::unique_ptr<ServerTransport>> CreateServer(
      const TransportOptions& options) override {
    return std::make_unique<LoopbackServer>();
  }

  std::string Add(NetworkPtr network) {
    Lock lock(mutex_);
    const std::string address =
        absl::StrCat("loopback://network", ++last_number_, ":1");
    networks_[address] = std::move(network);
    return address;
  }
  void Remove(const std::string& address) {
    Lock lock(mutex_);
    networks_.erase(address);
  }
  absl::StatusOr<NetworkPtr> Find(std::string_view address) {
    Lock lock(mutex_);
    const auto found = networks_.find(std::string(address));
    if (found != networks_.end()) return found->second;
    return absl::InvalidArgumentError("no such loopback network");
  }

 private:
  std::mutex mutex_;
  int last_number_ = 0;
  std::map<std::string, NetworkPtr> networks_;
};

absl::StatusOr<int> LoopbackServer::AddListeningPort(std::string_view address) {
  absl::StatusOr<NetworkPtr> network = LoopbackFactory::Get().Find(address);
  if (!network.ok()) return network.status();
  network_ = *std::move(network);
  return 1;
}

}  // namespace

LoopbackNetwork::LoopbackNetwork(const LoopbackOptions& options)
    : address_(LoopbackFactory::Get().Add(std::make_shared<Impl>(options))),
      impl_(*LoopbackFactory::Get().Find(address_)) {}

LoopbackNetwork::~LoopbackNetwork() {
  LoopbackFactory::Get().Remove(address_);
  impl_->Stop();
}

void LoopbackNetwork::DropConnections() { impl_->DropAll(); }
void LoopbackNetwork::set_unreachable(bool unreachable) {
  impl_->set_unreachable(unreachable);
}
void LoopbackNetwork::SetLane(uint32_t lane) { impl_->SetLane(lane); }
size_t LoopbackNetwork::open_calls() const { return impl_->open_calls(); }
void LoopbackNetwork::WaitUntilIdle() const { impl_->WaitUntilIdle(); }
uint64_t LoopbackNetwork::bytes_in_use() const {
  return impl_->memory().bytes_in_use();
}
void LoopbackNetwork::ReplaceNextResponse(const RawFrame& frame) {
  impl_->Replace(/*response=*/true, frame);
}
void LoopbackNetwork::ReplaceNextRequest(const RawFrame& frame) {
  impl_->Replace(/*response=*/false, frame);
}

}  // namespace rpc::testing
