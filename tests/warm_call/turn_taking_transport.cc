#include "tests/warm_call/turn_taking_transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/transport.h"

namespace warm_call {
namespace {

class TurnTakingTransport final : public rpc::ClientTransport {
 public:
  TurnTakingTransport(std::unique_ptr<rpc::ClientTransport> real,
                      const std::function<void()>* before_wait)
      : real_(std::move(real)), before_wait_(*before_wait) {}

  void Wait(rpc::Event& event) override {
    before_wait_();
    real_->Wait(event);
  }

  void WakeWaiters() override { real_->WakeWaiters(); }

  const rpc::Limits& limits() const override { return real_->limits(); }
  uint32_t RegisterMethod(std::string_view path) override {
    return real_->RegisterMethod(path);
  }
  rpc::CallHandle StartCall(const rpc::CallOptions& options,
                            rpc::OutgoingFrame&& frame,
                            rpc::CallSink* sink) override {
    return real_->StartCall(options, std::move(frame), sink);
  }
  bool Send(rpc::CallHandle call, rpc::OutgoingFrame&& frame) override {
    return real_->Send(call, std::move(frame));
  }
  void Release(rpc::CallHandle call, uint64_t window_bytes,
               bool drained) override {
    real_->Release(call, window_bytes, drained);
  }
  void Cancel(rpc::CallHandle call, absl::Status reason) override {
    real_->Cancel(call, std::move(reason));
  }
  absl::StatusOr<rpc::Buffer> AllocateBuffer(size_t bytes) override {
    return real_->AllocateBuffer(bytes);
  }
  rpc::ConnectivityState GetState(bool try_to_connect) override {
    return real_->GetState(try_to_connect);
  }
  bool WaitForStateChange(rpc::ConnectivityState last_observed,
                          absl::Time deadline) override {
    return real_->WaitForStateChange(last_observed, deadline);
  }
  std::string device() const override { return real_->device(); }

 private:
  const std::unique_ptr<rpc::ClientTransport> real_;
  const std::function<void()>& before_wait_;
};

class TurnTakingFactory final : public rpc::TransportFactory {
 public:
  explicit TurnTakingFactory(std::function<void()> before_wait)
      : before_wait_(std::move(before_wait)) {}

  std::string_view scheme() const override { return "turns"; }
  absl::StatusOr<std::unique_ptr<rpc::ClientTransport>> CreateClient(
      std::string_view address, const rpc::TransportOptions& options) override {
    const std::string real_address =
        absl::StrCat("rdma", std::string(address.substr(scheme().size())));
    absl::StatusOr<rpc::TransportFactory*> factory = ForAddress(real_address);
    if (!factory.ok()) return factory.status();
    absl::StatusOr<std::unique_ptr<rpc::ClientTransport>> real =
        (*factory)->CreateClient(real_address, options);
    if (!real.ok()) return real.status();
    return std::make_unique<TurnTakingTransport>(*std::move(real),
                                                 &before_wait_);
  }
  absl::StatusOr<std::unique_ptr<rpc::ServerTransport>> CreateServer(
      const rpc::TransportOptions&) override {
    return absl::UnimplementedError("turns:// is for clients");
  }

 private:
  const std::function<void()> before_wait_;
};

}  // namespace

void RegisterTurnTakingTransport(std::function<void()> before_wait) {
  rpc::TransportFactory::Register(
      new TurnTakingFactory(std::move(before_wait)));
}

}  // namespace warm_call
