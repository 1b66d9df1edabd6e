// Protobuf messages into outgoing frames, and out of received buffers.
//
//   bazel run -c opt //benchmarks/micro:codec_benchmark
//
// The argument is the message's one field in bytes. Small messages go by
// scratch memory, larger ones straight into registered memory, as in a call.
// "ByFields": by the functions that are generated for the message's fields.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "benchmark/benchmark.h"
#include "benchmarks/micro/soft_endpoint.h"
#include "benchmarks/rpc_bench.pb.h"
#include "benchmarks/rpc_bench.rpc.pb.h"
#include "rdma_transport/registered_memory.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rpc/buffer.h"
#include "rpc/internal/message_codec.h"
#include "rpc/internal/message_functions.h"
#include "rpc/status.h"
#include "rpc/test/service_test_peer.h"
#include "rpc/transport.h"

namespace {

using benchmarks::OrDie;
using benchmarks::Payload;
using rpc::BufferChain;
using rpc::internal::DecodeMessage;
using rpc::internal::EncodeLimits;
using rpc::internal::EncodeMessage;
using rpc::internal::kMaxProtobufBytes;
using rpc::internal::MessageScratch;

// EncodeMessage's allocator: registered memory, as a transport gives it.
class Allocator {
 public:
  absl::StatusOr<rpc::Buffer> AllocateBuffer(size_t bytes) {
    return memory_.Allocate(bytes);
  }

 private:
  const std::unique_ptr<rdma::Device> device_ = benchmarks::OpenSoftDevice();
  const std::unique_ptr<rdma::ProtectionDomain> pd_ =
      OrDie(rdma::ProtectionDomain::Create(device_.get()));
  rdma::RegisteredMemory memory_{pd_.get(), uint64_t{256} << 20};
};

Payload MessageOf(const benchmark::State& state) {
  Payload message;
  message.set_data(std::string(static_cast<size_t>(state.range(0)), 'p'));
  return message;
}

rpc::internal::MessageFunctions FunctionsOfPayload() {
  benchmarks::Bench::Service service;
  return rpc::testing::ServiceTestPeer::Messages(service, /*index=*/0).request;
}

void EncodeWith(const rpc::internal::MessageFunctions& functions,
                benchmark::State& state) {
  Allocator allocator;
  const Payload message = MessageOf(state);
  const EncodeLimits limits({.copy_message_bytes = MessageScratch::kBytes,
                             .max_message_bytes = kMaxProtobufBytes},
                            kMaxProtobufBytes);
  for (auto _ : state) {
    MessageScratch scratch;
    rpc::OutgoingFrame frame;
    rpc::Status error;
    if (!EncodeMessage(message, allocator, limits, scratch, frame, &error,
                       functions)) {
      state.SkipWithError(error.error_message().c_str());
      break;
    }
    benchmark::DoNotOptimize(frame);
    benchmark::DoNotOptimize(scratch);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void Encode(benchmark::State& state) {
  EncodeWith(rpc::internal::kProtobufsOwn, state);
}
BENCHMARK(Encode)->Arg(64)->Arg(1000)->Arg(8 << 10)->Arg(64 << 10)->Arg(1
                                                                        << 20);

void EncodeByFields(benchmark::State& state) {
  EncodeWith(FunctionsOfPayload(), state);
}
BENCHMARK(EncodeByFields)
    ->Arg(64)
    ->Arg(1000)
    ->Arg(8 << 10)
    ->Arg(64 << 10)
    ->Arg(1 << 20);

BufferChain InPieces(std::string_view bytes, size_t piece_bytes) {
  BufferChain chain;
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    chain.Append(rpc::Buffer::CopyOf(bytes.substr(at, piece_bytes)));
  }
  return chain;
}

// Into a message that has held such a one before.
void Decode(benchmark::State& state, size_t piece_bytes) {
  const std::string bytes = MessageOf(state).SerializeAsString();
  const BufferChain chain =
      InPieces(bytes, piece_bytes == 0 ? bytes.size() : piece_bytes);
  Payload message;
  for (auto _ : state) {
    rpc::Status error;
    if (!DecodeMessage(chain, &message, &error)) {
      state.SkipWithError(error.error_message().c_str());
      break;
    }
    benchmark::DoNotOptimize(message);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void DecodeContiguous(benchmark::State& state) { Decode(state, 0); }
BENCHMARK(DecodeContiguous)->Arg(64)->Arg(8 << 10)->Arg(64 << 10)->Arg(1 << 20);

void DecodeByFields(benchmark::State& state) {
  const auto parse = FunctionsOfPayload().parse;
  const std::string bytes = MessageOf(state).SerializeAsString();
  Payload message;
  for (auto _ : state) {
    if (!parse(bytes, &message)) {
      state.SkipWithError("not parsed");
      break;
    }
    benchmark::DoNotOptimize(message);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(DecodeByFields)->Arg(64)->Arg(8 << 10)->Arg(64 << 10);

void DecodePiecesOf4KiB(benchmark::State& state) { Decode(state, 4 << 10); }
BENCHMARK(DecodePiecesOf4KiB)->Arg(8 << 10)->Arg(64 << 10)->Arg(1 << 20);

}  // namespace
