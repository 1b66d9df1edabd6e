// The pollers of a process's client side: for each device one, or as many as
// the options say, shared by all endpoints with the same options.
#ifndef VERBENA_RDMA_TRANSPORT_CLIENT_POLLER_H_
#define VERBENA_RDMA_TRANSPORT_CLIENT_POLLER_H_

#include <cstdint>
#include <memory>

#include "absl/base/attributes.h"
#include "absl/status/statusor.h"
#include "rdma_transport/call_delivery.h"
#include "rdma_transport/call_sending.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/device_context.h"
#include "rdma_transport/poller.h"
#include "rpc/transport.h"

namespace rdma {

struct ClientPoller {
  CallDelivery delivery;
  std::unique_ptr<Poller> poller;

  // What transports do with calls, on the driver's thread: rpc/transport.h.
  bool Send(rpc::CallHandle handle, rpc::OutgoingFrame& frame);
  // The same, in the caller.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool SendInLine(rpc::CallHandle handle,
                                               rpc::OutgoingFrame& frame) {
    Call* const call = poller->calls().Find(handle);
    if (call == nullptr) [[unlikely]]
      return false;
    if (call->connection == nullptr) [[unlikely]] {
      HoldBack(*call, frame);
      return false;
    }
    const bool sent =
        call->connection->SendDataInLine(*call, frame) && !frame.end;
    if (!sent) return false;
    if (!frame.sent_by_result) delivery.Sent(*call);
    return frame.sent_by_result;
  }
  void Release(rpc::CallHandle handle, uint64_t window_bytes, bool drained);

  // A shared one for `options`, made where it is not there yet: each of
  // options.pollers in turn. The last reference may go on any thread, also on
  // one that the poller runs a callback on.
  static absl::StatusOr<std::shared_ptr<ClientPoller>> Get(
      const rpc::TransportOptions& options);

  // A poller with its delivery, not shared.
  static absl::StatusOr<std::unique_ptr<ClientPoller>> Create(
      std::shared_ptr<DeviceContext> context, const Poller::Options& options);
  ~ClientPoller();

 private:
  // A call that may still wait for its connection.
  static void HoldBack(Call& call, rpc::OutgoingFrame& frame);
};

// What the transport's options say for a device and for a poller.
DeviceContext::Options DeviceOptionsOf(const rpc::TransportOptions& options);
Poller::Options PollerOptionsOf(const rpc::TransportOptions& options);
// What a connection can move, whatever they say.
rpc::Limits TransportLimits();

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CLIENT_POLLER_H_
