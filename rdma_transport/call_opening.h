// CallDelivery::DeliverOpen, for where most calls come from, in line.
#ifndef VERBENA_RDMA_TRANSPORT_CALL_OPENING_H_
#define VERBENA_RDMA_TRANSPORT_CALL_OPENING_H_

#include <cassert>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "rdma_transport/call.h"
#include "rdma_transport/call_delivery.h"
#include "rdma_transport/connection.h"
#include "rpc/transport.h"

namespace rdma {

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void CallDelivery::DeliverOpenInLine(
    Call& call, rpc::IncomingFrame& frame, ArrivingMessage* arriving) {
  call.busy = true;
  Connection* const connection = call.pinned = call.connection;
  connection->Pin();
  const rpc::ServerSink::Call info = {.handle = call.handle,
                                      .method = call.method->token,
                                      .path = call.method->path,
                                      .deadline = call.deadline,
                                      .peer = connection->peer(),
                                      .cut_off = &call.cut_off};
  rpc::CallSink* sink = nullptr;
  const auto open = [&] {
    sink = server_sink_->OnCall(info, frame);
    if (arriving != nullptr) [[unlikely]]
      arriving->StopParsing();
  };
  if (!poller_->RunCallback(/*quick=*/false, open)) [[unlikely]] {
    return AfterOpenLater(call, sink);
  }
  // Nothing is left of most.
  if (ABSL_PREDICT_TRUE(sink == rpc::CallSink::Nobody()) &&
      ABSL_PREDICT_TRUE(call.closed)) {
    assert(!call.queued && call.inbox.empty());
    connection->Unpin();
    return Destroy(call);
  }
  AfterOpen(call, sink, /*at_tail=*/true);
}

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CALL_OPENING_H_
