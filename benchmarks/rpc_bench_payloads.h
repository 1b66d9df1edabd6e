// The payloads of one workload, and whether they arrived: what its calls send,
// and how their answers are checked.
//
// Thread rule: const use by any number of threads.
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_PAYLOADS_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_PAYLOADS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/rpc_bench.pb.h"
#include "rpc/rpc.h"

namespace benchmarks {

class Payloads {
 public:
  struct Options {
    size_t payload_bytes = 0;
    bool attachment = false;
    uint64_t working_set_bytes = 0;
  };

  // Attachments are memory of `channel`. RESOURCE_EXHAUSTED: it has no more.
  static absl::StatusOr<Payloads> Create(const Options& options,
                                         rpc::Channel& channel);

  // Call `number` sends request(number), with attachment(number).
  const Payload& request(uint64_t number) const {
    return ItemOf(number).request;
  }
  const rpc::BufferChain& attachment(uint64_t number) const {
    return ItemOf(number).attachment;
  }

  // Whether the answer of call `number` is to be compared byte by byte: now and
  // then, as that takes its time.
  static bool IsSampled(uint64_t number) { return number % 256 == 0; }

  // OK, or DATA_LOSS where the answer to call `number` is wrong.
  absl::Status CheckEcho(uint64_t number, const Payload& response,
                         const rpc::BufferChain& attachment) const;
  // `checked`: it was PutChecked.
  absl::Status CheckReceipt(uint64_t number, const Receipt& receipt,
                            bool checked) const;

 private:
  struct Item {
    Payload request;
    rpc::BufferChain attachment;
    uint64_t checksum = 0;
  };

  const Item& ItemOf(uint64_t number) const {
    // A division takes as long as all else that is done here for a small call.
    return items_.size() == 1 ? items_[0] : items_[number % items_.size()];
  }

  size_t bytes_ = 0;
  std::vector<Item> items_;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_PAYLOADS_H_
