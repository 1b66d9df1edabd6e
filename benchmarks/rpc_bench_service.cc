#include "benchmarks/rpc_bench_service.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"

namespace benchmarks {

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

rpc::Status BenchService::Sleep(rpc::ServerContext* context, const Nap* request,
                                Receipt* response) {
  absl::SleepFor(absl::Microseconds(request->microseconds()));
  return rpc::Status::OK;
}

}  // namespace benchmarks
