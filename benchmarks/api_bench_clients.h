// api_bench's clients: the same calls by each API of the client.
//
//   std::unique_ptr<ApiClient> client = MakeApiClient("callback", channel);
//   rpc::Status status = client->MakeCalls(absl::Now() + kTime, 64,
//   &latencies); status = client->ReadStream(100'000, 64);
//
// Thread rule: one thread, which waits until it is over.
#ifndef VERBENA_BENCHMARKS_API_BENCH_CLIENTS_H_
#define VERBENA_BENCHMARKS_API_BENCH_CLIENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "benchmarks/latency_histogram.h"
#include "rpc/rpc.h"

namespace benchmarks {

class ApiClient {
 public:
  virtual ~ApiClient() = default;
  // Unary calls with `bytes` of payload there and back, each begun when the one
  // before has ended, until `end`. Stops at one that fails.
  virtual rpc::Status MakeCalls(absl::Time end, size_t bytes,
                                LatencyHistogram* latencies) = 0;
  // One call whose server streams `count` messages.
  virtual rpc::Status ReadStream(int64_t count, size_t bytes) = 0;
};

// `api`: blocking, callback, queue or coroutine; else null.
std::unique_ptr<ApiClient> MakeApiClient(
    const std::string& api, const std::shared_ptr<rpc::Channel>& channel);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_API_BENCH_CLIENTS_H_
