// rpc::ClientTransport over an endpoint of the connection pool.
#ifndef VERBENA_RDMA_TRANSPORT_CLIENT_TRANSPORT_H_
#define VERBENA_RDMA_TRANSPORT_CLIENT_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rdma_transport/client_poller.h"
#include "rdma_transport/endpoint.h"
#include "rpc/transport.h"

namespace rdma {

class ClientTransport final : public rpc::ClientTransport {
 public:
  ClientTransport(std::shared_ptr<Endpoint> endpoint,
                  const rpc::TransportOptions& options)
      : endpoint_(std::move(endpoint)), limits_(TransportLimits()) {}

  const rpc::Limits& limits() const override { return limits_; }
  uint32_t RegisterMethod(std::string_view path) override {
    return endpoint_->RegisterMethod(path);
  }
  rpc::CallHandle StartCall(const rpc::CallOptions& options,
                            rpc::OutgoingFrame&& frame,
                            rpc::CallSink* sink) override {
    return endpoint_->StartCall(options, std::move(frame), sink);
  }
  bool Send(rpc::CallHandle call, rpc::OutgoingFrame&& frame) override {
    return endpoint_->Send(call, std::move(frame));
  }
  void Release(rpc::CallHandle call, uint64_t window_bytes,
               bool drained) override {
    endpoint_->Release(call, window_bytes, drained);
  }
  void Cancel(rpc::CallHandle call, absl::Status reason) override {
    endpoint_->Cancel(call, std::move(reason));
  }
  void Wait(rpc::Event& event) override { endpoint_->Wait(event); }
  void WaitAsGuest(rpc::Event& event) override {
    endpoint_->WaitAsGuest(event);
  }
  void EndVisits() override { endpoint_->EndVisits(); }
  const void* driven() const override { return endpoint_->driven(); }
  void WakeWaiters() override { endpoint_->WakeWaiters(); }
  absl::StatusOr<rpc::Buffer> AllocateBuffer(size_t bytes) override {
    return endpoint_->AllocateBuffer(bytes);
  }
  std::shared_ptr<rpc::GrowingMessage> GrowMessage(size_t bytes) override {
    return endpoint_->GrowMessage(bytes);
  }
  rpc::ConnectivityState GetState(bool try_to_connect) override {
    return endpoint_->GetState(try_to_connect);
  }
  bool WaitForStateChange(rpc::ConnectivityState last_observed,
                          absl::Time deadline) override {
    return endpoint_->WaitForStateChange(last_observed, deadline);
  }
  void ResetBackoff() override { endpoint_->ResetBackoff(); }
  void AddStateListener(rpc::StateListener* listener) override {
    endpoint_->AddStateListener(listener);
  }
  void RemoveStateListener(rpc::StateListener* listener) override {
    endpoint_->RemoveStateListener(listener);
  }
  std::string device() const override { return endpoint_->device(); }
  std::string peer() const override { return endpoint_->peer(); }

 private:
  const std::shared_ptr<Endpoint> endpoint_;
  const rpc::Limits limits_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CLIENT_TRANSPORT_H_
