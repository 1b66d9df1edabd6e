// rpc::ServerTransport: a poller for each device that the server listens with.
//
// Thread rule: public functions as rpc/transport.h says.
#ifndef VERBENA_RDMA_TRANSPORT_SERVER_TRANSPORT_H_
#define VERBENA_RDMA_TRANSPORT_SERVER_TRANSPORT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/server_poller.h"
#include "rpc/transport.h"

namespace rdma {

class ServerTransport final : public rpc::ServerTransport {
 public:
  // A named device is opened at once, so that a wrong name is told here.
  static absl::StatusOr<std::unique_ptr<ServerTransport>> Create(
      const rpc::TransportOptions& options);
  // Shuts down at once where that was not done.
  ~ServerTransport() override;

  const rpc::Limits& limits() const override { return limits_; }
  absl::StatusOr<int> AddListeningPort(std::string_view address) override;
  absl::Status Start(rpc::ServerSink* sink) override;
  bool Send(rpc::CallHandle call, rpc::OutgoingFrame&& frame) override;
  void Release(rpc::CallHandle call, uint64_t window_bytes,
               bool drained) override;
  void Cancel(rpc::CallHandle call, absl::Status reason) override;
  void Wait(rpc::Event& event) override;
  void WakeWaiters() override;
  absl::StatusOr<rpc::Buffer> AllocateBuffer(rpc::CallHandle call,
                                             size_t bytes) override;
  std::shared_ptr<rpc::GrowingMessage> GrowMessage(rpc::CallHandle call,
                                                   size_t bytes) override;
  void Shutdown(absl::Time deadline) override;
  std::string device() const override;

 private:
  explicit ServerTransport(const rpc::TransportOptions& options);

  // The poller of a device that listens, made where there is none yet, with the
  // others of the device.
  absl::StatusOr<ServerPoller*> PollerFor(const std::string& device);
  absl::Status AddPollers(const std::string& device);
  absl::Status CheckPollersOf(const std::vector<std::string>& devices) const;
  absl::StatusOr<int> ListenOnAll(const std::vector<ServerPoller*>& pollers,
                                  SocketAddress address);
  // One with connections, each in turn.
  ServerPoller* PollerToDrive();
  ServerPoller& PollerOf(rpc::CallHandle call) const {
    return *pollers_[CallTable::PollerNumberOf(call)].poller;
  }

  struct DevicePoller {
    std::string device;  // as it was asked for
    std::unique_ptr<ServerPoller> poller;
  };

  const rpc::TransportOptions options_;
  const rpc::Limits limits_;
  std::atomic<uint32_t> connections_{0};
  std::atomic<size_t> waits_{0};
  // By number; of one device, the one that listens comes first. Does not change
  // after Start.
  std::vector<DevicePoller> pollers_;

  absl::Mutex shutdown_mutex_;
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_SERVER_TRANSPORT_H_
