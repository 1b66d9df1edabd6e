// librdmacm's objects with owners, and its events by value.
//
//   absl::StatusOr<UniqueEventChannel> channel = CreateEventChannel();
//   absl::StatusOr<UniqueCmId> id = CreateCmId(channel->get());
//   while (auto event = ReceiveCmEvent(channel->get())) ...
//
// Thread rule: one thread at a time for a channel and its ids.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_HANDLES_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_HANDLES_H_

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

struct EventChannelDeleter {
  void operator()(rdma_event_channel* channel) const {
    rdma_destroy_event_channel(channel);
  }
};
// REQUIRES: its ids are destroyed before it.
using UniqueEventChannel =
    std::unique_ptr<rdma_event_channel, EventChannelDeleter>;

struct CmIdDeleter {
  // Also drops the events of the id that nobody has received yet, and tells the
  // peer of a connection, or of an attempt, that it is over.
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
using UniqueCmId = std::unique_ptr<rdma_cm_id, CmIdDeleter>;

// With a descriptor that does not block. rdma_create_event_channel(3).
absl::StatusOr<UniqueEventChannel> CreateEventChannel();

// For RC QPs. rdma_create_id(3).
absl::StatusOr<UniqueCmId> CreateCmId(rdma_event_channel* channel);

// An rdma_cm_event, acknowledged already, so that its ids may be destroyed.
struct ReceivedCmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_TIMEWAIT_EXIT;
  int status = 0;
  rdma_cm_id* id = nullptr;
  rdma_cm_id* listener = nullptr;  // of a CONNECT_REQUEST, whose `id` is new
  // As the kernel puts it: what this side may serve, and issue.
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  std::string private_data;
};

// The next event, or nothing. rdma_get_cm_event(3). Does not block.
std::optional<ReceivedCmEvent> ReceiveCmEvent(rdma_event_channel* channel);

// By value; of family AF_UNSPEC where there is none yet.
SocketAddress LocalAddressOf(rdma_cm_id* id);
SocketAddress PeerAddressOf(rdma_cm_id* id);

// Sets an option of level RDMA_OPTION_ID that the connection can do without:
// where the kernel does not know it, the log says so. rdma_set_option(3).
void SetCmIdOption(rdma_cm_id* id, int option, uint8_t value);
void SetCmIdOption(rdma_cm_id* id, int option, int value);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_HANDLES_H_
