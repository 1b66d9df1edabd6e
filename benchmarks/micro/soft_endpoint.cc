#include "benchmarks/micro/soft_endpoint.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "rdma_transport/software/software_provider.h"

namespace benchmarks {
namespace {

using rdma::CmEvent;

constexpr uint32_t kSendDepth = 128;

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

void CheckError(int error, const char* call) {
  if (error != 0) Die(absl::InternalError(call));
}

}  // namespace

void Die(const absl::Status& why) {
  std::fprintf(stderr, "%s\n", why.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<rdma::Device> OpenSoftDevice() {
  return OrDie(rdma::MakeSoftwareProvider()->Open(
      "soft0", {.single_threaded_queues = true}));
}

void Connect(rdma::ConnectionManager& client, ibv_qp* client_qp,
             rdma::ConnectionManager& server, ibv_qp* server_qp) {
  rdma::CmId* const listener =
      OrDie(server.Listen(*rdma::SocketAddress::FromNumeric("127.0.0.1", 0),
                          /*backlog=*/1, nullptr));
  OrDie(client.Connect(listener->local_address(), client_qp, {},
                       absl::Seconds(10), nullptr));
  for (int up = 0; up < 2;) {
    for (rdma::ConnectionManager* const side : {&client, &server}) {
      const std::optional<CmEvent> event = side->GetEvent();
      if (!event) continue;
      if (event->type == CmEvent::Type::kConnectRequest) {
        Check(server.Accept(event->id, server_qp, {}));
      } else if (event->type == CmEvent::Type::kEstablished) {
        ++up;
      } else {
        Die(event->status);
      }
    }
  }
  server.Destroy(listener);
}

SoftEndpoint::SoftEndpoint(size_t memory_bytes) : device_(OpenSoftDevice()) {
  pd_ = OrDie(rdma::ProtectionDomain::Create(device_.get()));
  receives_ = OrDie(rdma::MemoryRegion::Create(
      pd_.get(), size_t{kReceives} * kReceiveBytes, IBV_ACCESS_LOCAL_WRITE));
  if (memory_bytes > 0) {
    memory_ = OrDie(rdma::MemoryRegion::Create(
        pd_.get(), memory_bytes,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
  }
  channel_ = OrDie(rdma::CompletionChannel::Create(device_.get()));
  cq_ = OrDie(rdma::CompletionQueue::Create(channel_.get(), device_.get(),
                                            2 * kSendDepth + kReceives));
  srq_ = OrDie(rdma::SharedReceiveQueue::Create(pd_.get(), kReceives, 1));
  manager_ = OrDie(device_->CreateConnectionManager());
  for (uint64_t i = 0; i < kReceives; ++i) Repost(i);
}

SoftEndpoint::~SoftEndpoint() = default;

rdma::QueuePair* SoftEndpoint::AddQp() {
  qps_.push_back(OrDie(
      rdma::QueuePair::Create(pd_.get(), cq_.get(), srq_.get(),
                              {kSendDepth, 1, device_->max_inline_data()})));
  return qps_.back().get();
}

void SoftEndpoint::Repost(uint64_t wr_id) {
  ibv_sge sge = {
      reinterpret_cast<uint64_t>(receives_->data()) + wr_id * kReceiveBytes,
      kReceiveBytes, receives_->lkey()};
  ibv_recv_wr wr = {wr_id, nullptr, &sge, 1};
  ibv_recv_wr* bad;
  CheckError(ibv_post_srq_recv(srq_->get(), &wr, &bad), "ibv_post_srq_recv");
}

}  // namespace benchmarks
