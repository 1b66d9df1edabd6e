#include "benchmarks/rpc_bench_service.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"

namespace benchmarks {
namespace {

constexpr uint64_t kMostToGet = 2'000'000'000;

}  // namespace

rpc::Status BenchService::Echo(rpc::ServerContext* context,
                               const Payload* request, Payload* response) {
  if (!request->data().empty()) response->set_data(request->data());
  if (!context->attachment().empty()) {
    context->set_attachment(context->attachment());
  }
  return rpc::Status::OK;
}

rpc::Status BenchService::Put(rpc::ServerContext* context,
                              const Payload* request, Receipt* response) {
  response->set_bytes(request->data().size() + context->attachment().size());
  return rpc::Status::OK;
}

rpc::Status BenchService::PutChecked(rpc::ServerContext* context,
                                     const Payload* request,
                                     Receipt* response) {
  response->set_checksum(context->attachment().empty()
                             ? Checksum(request->data())
                             : Checksum(context->attachment()));
  return Put(context, request, response);
}

const std::string& BenchService::StoredPayload(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto [place, is_new] = stored_.try_emplace(bytes);
  if (is_new) place->second = TestPattern(bytes, /*seed=*/0);
  return place->second;
}

rpc::Status BenchService::Get(rpc::ServerContext* context,
                              const Wanted* request, Payload* response) {
  if (request->bytes() > kMostToGet) {
    return rpc::Status(rpc::StatusCode::INVALID_ARGUMENT,
                       "more than a message holds was asked for");
  }
  response->set_data(StoredPayload(static_cast<size_t>(request->bytes())));
  return rpc::Status::OK;
}

rpc::Status BenchService::Sleep(rpc::ServerContext* context, const Nap* request,
                                Receipt* response) {
  absl::SleepFor(absl::Microseconds(request->microseconds()));
  return rpc::Status::OK;
}

}  // namespace benchmarks
