// The handlers that rpc_bench and scale_bench call; written as users write
// them, blocking and without tricks.
//
// Thread-safe: it has no state.
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_SERVICE_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_SERVICE_H_

#include "benchmarks/rpc_bench.rpc.pb.h"
#include "rpc/rpc.h"

namespace benchmarks {

class BenchService final : public Bench::Service {
 public:
  rpc::Status Echo(rpc::ServerContext* context, const Payload* request,
                   Payload* response) override;
  rpc::Status Put(rpc::ServerContext* context, const Payload* request,
                  Receipt* response) override;
  rpc::Status PutChecked(rpc::ServerContext* context, const Payload* request,
                         Receipt* response) override;
  rpc::Status Sleep(rpc::ServerContext* context, const Nap* request,
                    Receipt* response) override;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_SERVICE_H_
