// What a frame costs to lay out and to take apart.
//
//   bazel run -c opt //benchmarks/micro:frame_benchmark
//
// Encoding is what a small call does for its one frame: tag, prefix, and the
// message copied behind. Decoding is DecodeFrame with all of its checks; of an
// offer, every segment is read as well. The argument is bytes of message, or
// the number of segments.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "benchmark/benchmark.h"
#include "rdma_transport/frame.h"

namespace {

using rdma::FrameFields;
using rdma::FrameKind;
using rdma::FrameView;
using rdma::Segment;

constexpr std::string_view kPath = "/benchmarks.Bench/Echo";

FrameFields Request(size_t message_bytes) {
  FrameFields fields;
  fields.kind = FrameKind::kOpen;
  fields.flags = rdma::kEnd | rdma::kHasMessage;
  fields.slot = 7;
  fields.message_bytes = static_cast<uint32_t>(message_bytes);
  fields.timeout_us = 1'000'000;
  return fields;
}

FrameFields Response(size_t message_bytes) {
  FrameFields fields = Request(message_bytes);
  fields.kind = FrameKind::kData;
  return fields;
}

FrameFields FirstRequest(size_t message_bytes) {
  FrameFields fields = Request(message_bytes);
  fields.flags |= rdma::kMethodDefinition;
  fields.method_path = kPath;
  return fields;
}

void Encode(benchmark::State& state, FrameFields fields) {
  const std::vector<std::byte> message(fields.message_bytes, std::byte{7});
  std::vector<std::byte> payload(rdma::PrefixBytes(fields) + message.size());
  std::byte* out = payload.data();
  for (auto _ : state) {
    // As of any call: nothing of the fields is known beforehand.
    ++fields.call_sequence;
    benchmark::DoNotOptimize(fields);
    rdma::EncodePrefix(fields, out);
    if (!message.empty()) {
      std::memcpy(out + rdma::PrefixBytes(fields), message.data(),
                  message.size());
    }
    benchmark::DoNotOptimize(rdma::EncodeTag(fields));
    benchmark::DoNotOptimize(out);
    benchmark::ClobberMemory();
  }
}

void EncodeRequest(benchmark::State& state) {
  Encode(state, Request(static_cast<size_t>(state.range(0))));
}
BENCHMARK(EncodeRequest)->Arg(0)->Arg(64)->Arg(1024);

void EncodeResponse(benchmark::State& state) {
  Encode(state, Response(static_cast<size_t>(state.range(0))));
}
BENCHMARK(EncodeResponse)->Arg(64);

void EncodeFirstRequest(benchmark::State& state) {
  Encode(state, FirstRequest(static_cast<size_t>(state.range(0))));
}
BENCHMARK(EncodeFirstRequest)->Arg(64);

void Decode(benchmark::State& state, const FrameFields& fields,
            size_t body_bytes, size_t segments) {
  std::vector<std::byte> payload(rdma::PrefixBytes(fields) + body_bytes);
  rdma::EncodePrefix(fields, payload.data());
  for (size_t i = 0; i < segments; ++i) {
    rdma::EncodeSegment(
        {.address = 4096 * (i + 1), .length = 100, .rkey = 5},
        payload.data() + rdma::PrefixBytes(fields) + i * rdma::kSegmentBytes);
  }
  uint32_t tag = rdma::EncodeTag(fields);
  for (auto _ : state) {
    benchmark::DoNotOptimize(tag);
    benchmark::DoNotOptimize(payload.data());
    benchmark::ClobberMemory();
    FrameView view;
    const char* const error = rdma::DecodeFrame(tag, payload, &view);
    if (error != nullptr) {
      state.SkipWithError(error);
      break;
    }
    benchmark::DoNotOptimize(view);
    for (size_t i = 0; i < segments; ++i) {
      benchmark::DoNotOptimize(
          rdma::DecodeSegment(view.message.data() + i * rdma::kSegmentBytes));
    }
  }
}

void DecodeRequest(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Decode(state, Request(bytes), bytes, 0);
}
BENCHMARK(DecodeRequest)->Arg(0)->Arg(64)->Arg(1024);

void DecodeResponse(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Decode(state, Response(bytes), bytes, 0);
}
BENCHMARK(DecodeResponse)->Arg(64);

void DecodeFirstRequest(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Decode(state, FirstRequest(bytes), bytes, 0);
}
BENCHMARK(DecodeFirstRequest)->Arg(64);

void DecodeOffer(benchmark::State& state) {
  const auto segments = static_cast<size_t>(state.range(0));
  FrameFields fields = Request(segments);
  fields.flags |= rdma::kMessageOffer;
  Decode(state, fields, segments * rdma::kSegmentBytes, segments);
}
BENCHMARK(DecodeOffer)->Arg(1)->Arg(rdma::kMaxSegments);

}  // namespace
