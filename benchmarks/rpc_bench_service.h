// The handlers that rpc_bench and scale_bench call; written as users write
// them, blocking and without tricks.
//
// Thread-safe.
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_SERVICE_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_SERVICE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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
  rpc::Status Get(rpc::ServerContext* context, const Wanted* request,
                  Payload* response) override;
  rpc::Status Sleep(rpc::ServerContext* context, const Nap* request,
                    Receipt* response) override;

 private:
  // What Get gives, as a store would have it: of each size that was asked for.
  const std::string& StoredPayload(size_t bytes);

  absl::Mutex mutex_;
  std::map<size_t, std::string> stored_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_SERVICE_H_
