#include "tests/e2e/probe_service.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"
#include "rdma_transport/statistics.h"

namespace e2e {
namespace {

// A blocking handler learns that its call was cut off by asking.
constexpr absl::Duration kAskEvery = absl::Milliseconds(5);

}  // namespace

rpc::Status ProbeService::Echo(rpc::ServerContext* context, const Blob* request,
                               Blob* response) {
  response->set_data(request->data());
  context->set_attachment(context->attachment());
  return rpc::Status::OK;
}

rpc::Status ProbeService::Consume(rpc::ServerContext* context,
                                  const Blob* request, Summary* response) {
  const rpc::BufferChain& attachment = context->attachment();
  response->set_message_bytes(request->data().size());
  response->set_message_checksum(benchmarks::Checksum(request->data()));
  response->set_attachment_bytes(attachment.size());
  response->set_attachment_checksum(benchmarks::Checksum(attachment));
  return rpc::Status::OK;
}

rpc::Status ProbeService::Produce(rpc::ServerContext* context,
                                  const Sizes* request, Blob* response) {
  response->mutable_data()->resize(request->message_bytes());
  benchmarks::FillTestPattern(response->mutable_data()->data(),
                              request->message_bytes(), kMessageSeed);
  absl::StatusOr<rpc::Buffer> buffer =
      context->AllocateBuffer(request->attachment_bytes());
  if (!buffer.ok()) return buffer.status();
  benchmarks::FillTestPattern(reinterpret_cast<char*>(buffer->mutable_data()),
                              buffer->size(), kAttachmentSeed);
  context->set_attachment(rpc::BufferChain(*std::move(buffer)));
  return rpc::Status::OK;
}

rpc::Status ProbeService::Block(rpc::ServerContext* context,
                                const Blob* request, Nothing* response) {
  absl::MutexLock lock(&mutex_);
  const int64_t releases = releases_;
  ++blocked_;
  while (releases_ == releases && !context->IsCancelled()) {
    released_.WaitWithTimeout(&mutex_, kAskEvery);
  }
  --blocked_;
  if (releases_ != releases) return rpc::Status::OK;
  ++cut_off_;
  return rpc::Status::CANCELLED;
}

rpc::Status ProbeService::ReleaseBlocked(rpc::ServerContext* context,
                                         const Nothing* request,
                                         Nothing* response) {
  absl::MutexLock lock(&mutex_);
  ++releases_;
  released_.SignalAll();
  return rpc::Status::OK;
}

rpc::Status ProbeService::Sleep(rpc::ServerContext* context, const Nap* request,
                                Nothing* response) {
  absl::SleepFor(absl::Milliseconds(request->milliseconds()));
  return rpc::Status::OK;
}

rpc::Status ProbeService::Observe(rpc::ServerContext* context,
                                  const Nothing* request,
                                  Observation* response) {
  absl::MutexLock lock(&mutex_);
  response->set_blocked(blocked_);
  response->set_cut_off(cut_off_);
  const rdma::TransportStatistics statistics = rdma::GetTransportStatistics();
  response->set_connections(static_cast<int64_t>(statistics.open_connections));
  response->set_registered_bytes(
      static_cast<int64_t>(statistics.registered_bytes));
  response->set_peer(context->peer());
  return rpc::Status::OK;
}

}  // namespace e2e
