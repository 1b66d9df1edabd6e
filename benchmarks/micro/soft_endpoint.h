// One end of connections over the software device, for micro-benchmarks: a
// device of its own with a PD, a CQ, an SRQ with receives posted, and QPs.
//
//   SoftEndpoint client, server;
//   Connect(client.manager(), client.AddQp()->get(),
//           server.manager(), server.AddQp()->get());
//
// Both ends are in one process and driven by one thread: what one has posted is
// there when the other polls next, so nothing is waited for. What goes wrong
// ends the program with a message.
//
// Thread rule: one thread.
#ifndef VERBENA_BENCHMARKS_MICRO_SOFT_ENDPOINT_H_
#define VERBENA_BENCHMARKS_MICRO_SOFT_ENDPOINT_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rdma_transport/verbs/queues.h"

namespace benchmarks {

[[noreturn]] void Die(const absl::Status& why);

// The value of what must not fail.
template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status());
  return *std::move(value);
}

// soft0, opened as the transport opens it.
std::unique_ptr<rdma::Device> OpenSoftDevice();

// Brings a connection up between two QPs in RESET. Nothing else may go on at
// either manager meanwhile.
void Connect(rdma::ConnectionManager& client, ibv_qp* client_qp,
             rdma::ConnectionManager& server, ibv_qp* server_qp);

class SoftEndpoint {
 public:
  static constexpr uint32_t kReceives = 128;
  static constexpr uint32_t kReceiveBytes = 16 << 10;

  // Of registered memory to send and to READ into; `memory_bytes` may be 0.
  explicit SoftEndpoint(size_t memory_bytes);
  ~SoftEndpoint();

  SoftEndpoint(const SoftEndpoint&) = delete;
  SoftEndpoint& operator=(const SoftEndpoint&) = delete;

  // In RESET. Owned by this object.
  rdma::QueuePair* AddQp();

  rdma::Device& device() { return *device_; }
  rdma::ConnectionManager& manager() { return *manager_; }
  rdma::MemoryRegion& memory() { return *memory_; }
  ibv_cq* cq() { return cq_->get(); }

  // Posts the receive of a completion again.
  void Repost(uint64_t wr_id);

 private:
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<rdma::ProtectionDomain> pd_;
  std::unique_ptr<rdma::MemoryRegion> receives_;
  std::unique_ptr<rdma::MemoryRegion> memory_;
  std::unique_ptr<rdma::CompletionChannel> channel_;
  std::unique_ptr<rdma::CompletionQueue> cq_;
  std::unique_ptr<rdma::SharedReceiveQueue> srq_;
  std::unique_ptr<rdma::ConnectionManager> manager_;
  std::vector<std::unique_ptr<rdma::QueuePair>> qps_;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_MICRO_SOFT_ENDPOINT_H_
