// What the machine itself can do, with no library in between: the line that
// Verbena and its peers can come near to (of bandwidth see below: there are
// ways past it).
//
//   bazel run -c opt //benchmarks/peers:floor_bench -- --mode=bandwidth
//       --payload_bytes=1M --working_set_bytes=0,1G
//
// Two processes, each spinning on its CPU, share memory that was mapped before
// the fork. One ring of cells leads there and one back. A cell is the payload
// and, right behind it, 24 bytes of head with a sequence number, so that 64 B
// take two cache lines. Writing the number publishes the cell. There is no
// framing, no flow control (no more cells are in flight than the ring has), no
// sleeping and no second client: a program that offers these has to be slower.
//
// latency and rate: payloads of up to 8 KiB. The client copies the
// payload out of its memory into a cell; the server copies it from there into a
// cell of the way back; the client copies it into a buffer of its own. So every
// byte is copied three times and crosses from one CPU to the other twice.
//
// latency and rate with --protobuf: what is echoed is a message of protobuf
// with the payload in it, as rpc_bench's. The client serializes it into a cell;
// the server parses it there, copies its payload into another message and
// serializes that into a cell of the way back; the client parses it. Nothing of
// an RPC is in it: for small messages next to what a call with protobuf can
// reach here. A large one is parsed where the peer wrote it, line by line,
// which an RPC that copies it first may better.
//
// bandwidth: the client tells where the payload is; the server copies it, by
// one memcpy of glibc, into a buffer of its own and answers. So every byte is
// copied once, by the receiver, as with process_vm_readv or an RDMA READ of
// shared memory. The receiver has one buffer for each call in flight. What to
// keep in mind:
//  - With --working_set_bytes=0 nobody writes the one payload again, so that it
//    stays in the *receiver's* caches: that is the speed of its cache, not of
//    moving fresh bytes between CPUs. A working set beyond the L3 cache (1G) is
//    the speed of memory, one core.
//  - The client does nothing meanwhile. Programs in which both CPUs copy at the
//    same time can be faster than this.
//  - The payload's memory is shared, which most kernels back with 4 KiB pages
//    (/sys/kernel/mm/transparent_hugepage/shmem_enabled); the buffer's is
//    private and has huge pages where it gets them. Copying out of huge pages
//    was about a tenth faster when cold, and a program whose payloads are
//    private memory (CMA) has that advantage.
//
// In a VM look at the floor beside each measurement. On one with two CPUs, 64 B
// took 160 ns at some times and 650 ns at others, and all else moved with it:
// probably by where the host put the two CPUs.
//
// Of every 256th call contents are checked as well: of an echo by comparing, of
// a bandwidth call by a checksum that the server makes of its buffer.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/peers/peer_main.h"
#include "benchmarks/peers/raw_payloads.h"
#include "benchmarks/peers/spinning.h"
#include "benchmarks/recorder.h"
#include "benchmarks/rpc_bench.pb.h"
#include "benchmarks/test_pattern.h"
#include "gflags/gflags.h"

DEFINE_bool(protobuf, false, "echo messages of protobuf (latency, rate)");

namespace benchmarks {
namespace {

using Mode = PeerWorkload::Mode;

constexpr size_t kCacheLine = 64;
constexpr size_t kMostEchoBytes = 8 << 10;
constexpr size_t kMostCells = 4096;
// What a message has beside its payload: a tag and a length.
constexpr size_t kMostMessageBytes = 6;
// Address space; pages come when they are touched.
constexpr size_t kPayloadBytes = size_t{16} << 30;

// The head of a message. It ends with its last cache line, and the payload
// lies before it: who spins on the sequence number does not take away lines
// that are still being written.
struct Cell {
  uint32_t bytes;    // of the payload
  uint32_t checked;  // the receiver is to make a checksum
  // bandwidth: there, the offset of the payload; back, the checksum.
  uint64_t value;
  std::atomic<uint64_t> sequence;  // of the message that is in here; from 1
};
constexpr size_t kRingBytes = kMostCells * (sizeof(Cell) + kMostEchoBytes +
                                            kMostMessageBytes + kCacheLine);

// Bytes of an echo's cell beside its head.
size_t InlineBytes(size_t payload_bytes) {
  return payload_bytes + (FLAGS_protobuf ? kMostMessageBytes : 0);
}

// Returns how many bytes it is.
uint32_t Serialize(const Payload& message, char* to) {
  const size_t bytes = message.ByteSizeLong();
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(to));
  return static_cast<uint32_t>(bytes);
}

// What the next messages will be like. The client raises `asked` when it has
// written the rest, and the server answers with `ready`.
struct alignas(kCacheLine) Setup {
  std::atomic<uint64_t> asked;
  std::atomic<uint64_t> ready;
  uint64_t payload_bytes;
  uint64_t cells;
  bool is_bandwidth;
};

// Cells that lie as close to one another as the payloads allow.
class Ring {
 public:
  Ring(char* memory, size_t cells, size_t inline_bytes)
      : memory_(memory),
        mask_(cells - 1),
        stride_((inline_bytes + sizeof(Cell) + kCacheLine - 1) / kCacheLine *
                kCacheLine) {}

  // With cells of another size, payload bytes lay where numbers are now.
  void Clear() { std::memset(memory_, 0, (mask_ + 1) * stride_); }

  char* payload(uint64_t number) const {
    return memory_ + (number & mask_) * stride_;
  }
  Cell& at(uint64_t number) const {
    return *reinterpret_cast<Cell*>(payload(number) + stride_ - sizeof(Cell));
  }
  // Null while message `number` (from 0) is not there.
  Cell* Find(uint64_t number) const {
    Cell& cell = at(number);
    const bool is_there =
        cell.sequence.load(std::memory_order_acquire) == number + 1;
    return is_there ? &cell : nullptr;
  }
  void Publish(uint64_t number) const {
    at(number).sequence.store(number + 1, std::memory_order_release);
  }

 private:
  char* memory_;
  size_t mask_;
  size_t stride_;
};

struct SharedMemory {
  Setup setup;
  alignas(kCacheLine) char there[kRingBytes];
  alignas(kCacheLine) char back[kRingBytes];
  alignas(4096) char payloads[kPayloadBytes];
};

class FloorServer {
 public:
  explicit FloorServer(SharedMemory& shared) : shared_(shared) {}

  absl::Status Run(int stop_fd) {
    StopWatch watch(stop_fd);
    while (true) {
      if (HandleOne()) continue;
      if (!status_.ok()) return status_;
      if (shared_.setup.asked.load(std::memory_order_acquire) != epoch_) {
        if (absl::Status status = SetUp(); !status.ok()) return status;
      }
      if (watch.MustStop()) return absl::OkStatus();
    }
  }

 private:
  absl::Status SetUp() {
    const Setup& setup = shared_.setup;
    const size_t inline_bytes =
        setup.is_bandwidth ? 0 : InlineBytes(setup.payload_bytes);
    there_ = Ring(shared_.there, setup.cells, inline_bytes);
    back_ = Ring(shared_.back, setup.cells, inline_bytes);
    next_ = 0;
    if (setup.is_bandwidth) {
      absl::StatusOr<Memory> buffers =
          Memory::Allocate(setup.cells * setup.payload_bytes);
      if (!buffers.ok()) return buffers.status();
      buffers_ = *std::move(buffers);
    }
    epoch_ = setup.asked.load(std::memory_order_relaxed);
    shared_.setup.ready.store(epoch_, std::memory_order_release);
    return absl::OkStatus();
  }

  bool HandleOne() {
    Cell* const request = there_.Find(next_);
    if (request == nullptr) return false;
    const Setup& setup = shared_.setup;
    if (request->bytes < setup.payload_bytes ||
        request->bytes > InlineBytes(setup.payload_bytes)) {
      status_ = absl::DataLossError(
          absl::StrCat("a message of ", request->bytes, " bytes came, not of ",
                       setup.payload_bytes));
      return false;
    }
    Cell& answer = back_.at(next_);
    answer.bytes = request->bytes;
    if (setup.is_bandwidth) {
      answer.value = Fetch(*request);
    } else if (FLAGS_protobuf) {
      if (!request_.ParseFromArray(there_.payload(next_),
                                   static_cast<int>(request->bytes))) {
        status_ = absl::DataLossError("a message came that does not parse");
        return false;
      }
      response_.set_data(request_.data());
      answer.bytes = Serialize(response_, back_.payload(next_));
    } else {
      std::memcpy(back_.payload(next_), there_.payload(next_), request->bytes);
    }
    back_.Publish(next_++);
    return true;
  }

  // Returns the checksum, if it is wanted.
  uint64_t Fetch(const Cell& request) {
    char* const buffer =
        buffers_.data() + (next_ & (shared_.setup.cells - 1)) * request.bytes;
    std::memcpy(buffer, shared_.payloads + request.value, request.bytes);
    if (request.checked == 0) return 0;
    return Checksum(std::string_view(buffer, request.bytes));
  }

  SharedMemory& shared_;
  Ring there_{shared_.there, 1, 0};
  Ring back_{shared_.back, 1, 0};
  uint64_t epoch_ = 0;
  uint64_t next_ = 0;
  Memory buffers_;
  Payload request_;
  Payload response_;
  absl::Status status_;
};

// One run of the client. Answers come in the order of the calls.
class FloorRun {
 public:
  FloorRun(const PeerWorkload& workload, SharedMemory& shared)
      : workload_(workload),
        shared_(shared),
        is_bandwidth_(workload.mode == Mode::kBandwidth),
        cells_(std::bit_ceil(static_cast<size_t>(workload.concurrency))),
        there_(shared.there, cells_,
               is_bandwidth_ ? 0 : InlineBytes(workload.payload_bytes)),
        back_(shared.back, cells_,
              is_bandwidth_ ? 0 : InlineBytes(workload.payload_bytes)),
        payloads_(workload, shared.payloads),
        received_(workload.payload_bytes),
        responses_(cells_),
        starts_ns_(cells_) {
    request_.set_data(payloads_.data(0), workload.payload_bytes);
  }

  absl::Status SetUp() {
    there_.Clear();
    back_.Clear();
    Setup& setup = shared_.setup;
    setup.payload_bytes = workload_.payload_bytes;
    setup.cells = cells_;
    setup.is_bandwidth = is_bandwidth_;
    const uint64_t epoch = setup.asked.load(std::memory_order_relaxed) + 1;
    setup.asked.store(epoch, std::memory_order_release);
    while (setup.ready.load(std::memory_order_acquire) != epoch) {
      if (watch_.IsGone()) return ServerIsGone();
    }
    return absl::OkStatus();
  }

  // A turn takes all answers that are there, and then makes as many calls.
  // The clock is read once for each: with many in flight, reading it for every
  // call would be a good part of what is measured.
  absl::Status Run(Recorder& recorder) {
    bool more = true;
    const auto limit = static_cast<uint64_t>(workload_.concurrency);
    while (more || done_ != sent_) {
      if (more && sent_ != done_ + limit) {
        const uint64_t now_ns = SteadyNowNs();
        while (sent_ != done_ + limit) Send(now_ns);
      }
      const uint64_t first = done_;
      while (done_ != sent_ && Take()) ++done_;
      if (done_ == first) {
        if (watch_.IsGone()) return ServerIsGone();
        continue;
      }
      const uint64_t end_ns = SteadyNowNs();
      for (uint64_t number = first; number != done_; ++number) {
        more &= recorder.Note(starts_ns_[number & (cells_ - 1)], end_ns,
                              Check(number));
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status ServerIsGone() {
    return absl::UnavailableError("the server is gone");
  }

  void Send(uint64_t now_ns) {
    Cell& cell = there_.at(sent_);
    const char* const payload = payloads_.data(sent_);
    cell.bytes = static_cast<uint32_t>(workload_.payload_bytes);
    if (is_bandwidth_) {
      cell.checked = RawPayloads::IsSampled(sent_) ? 1 : 0;
      cell.value = static_cast<uint64_t>(payload - shared_.payloads);
    } else if (FLAGS_protobuf) {
      cell.bytes = Serialize(request_, there_.payload(sent_));
    } else {
      std::memcpy(there_.payload(sent_), payload, workload_.payload_bytes);
    }
    starts_ns_[sent_ & (cells_ - 1)] = now_ns;
    there_.Publish(sent_++);
  }

  // Whether the next answer was there. Its size is checked afterwards, but it
  // does not get more room than there is.
  bool Take() {
    Cell* const cell = back_.Find(done_);
    if (cell == nullptr) return false;
    if (FLAGS_protobuf) {
      Payload& response = responses_[done_ & (cells_ - 1)];
      // Where it does not parse, what it holds is not the payload.
      (void)response.ParseFromArray(
          back_.payload(done_),
          static_cast<int>(std::min<size_t>(
              cell->bytes, InlineBytes(workload_.payload_bytes))));
    } else if (!is_bandwidth_) {
      std::memcpy(received_.data(), back_.payload(done_),
                  std::min<size_t>(cell->bytes, received_.size()));
    }
    return true;
  }

  // The cell of an answer stays as it is until its next call is sent.
  absl::Status Check(uint64_t number) {
    if (FLAGS_protobuf) {
      const std::string& data = responses_[number & (cells_ - 1)].data();
      return payloads_.CheckEcho(number, data.data(), data.size());
    }
    Cell& cell = back_.at(number);
    return is_bandwidth_
               ? payloads_.CheckReceipt(number, cell.bytes, cell.value)
               : payloads_.CheckEcho(number, back_.payload(number), cell.bytes);
  }

  const PeerWorkload& workload_;
  SharedMemory& shared_;
  const bool is_bandwidth_;
  const size_t cells_;
  Ring there_;
  Ring back_;
  RawPayloads payloads_;
  std::vector<char> received_;
  Payload request_;
  std::vector<Payload> responses_;  // of the calls in flight
  std::vector<uint64_t> starts_ns_;
  uint64_t sent_ = 0;
  uint64_t done_ = 0;
  ChildWatch watch_;
};

class FloorPeer final : public Peer {
 public:
  // Before PeerMain forks: both sides have the memory at the same address.
  FloorPeer() {
    void* const memory =
        mmap(nullptr, sizeof(SharedMemory), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("floor_bench: mmap");
      std::exit(1);
    }
    madvise(memory, sizeof(SharedMemory), MADV_HUGEPAGE);
    // The mapping is zero, which is what its members start with.
    shared_ = static_cast<SharedMemory*>(memory);
  }

  std::string name() const override {
    return FLAGS_protobuf ? "floor protobuf" : "floor";
  }

  absl::Status Serve(const std::function<void(const std::string&)>& ready,
                     int stop_fd) override {
    FloorServer server(*shared_);
    ready("shared memory");
    return server.Run(stop_fd);
  }

  absl::Status Connect(const std::string&) override { return absl::OkStatus(); }

  absl::Status Prepare(const PeerWorkload& workload) override {
    if (absl::Status status = CheckWorkload(workload); !status.ok()) {
      return status;
    }
    run_.emplace(workload, *shared_);
    return run_->SetUp();
  }

  absl::Status Run(const PeerWorkload&, Recorder& recorder) override {
    return run_->Run(recorder);
  }

 private:
  static absl::Status CheckWorkload(const PeerWorkload& workload) {
    if (workload.concurrency < 1 ||
        workload.concurrency > static_cast<int>(kMostCells)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--concurrency takes 1 to ", kMostCells));
    }
    if (workload.mode != Mode::kBandwidth &&
        workload.payload_bytes > kMostEchoBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--payload_bytes of an echo takes up to ", kMostEchoBytes));
    }
    if (FLAGS_protobuf && (workload.mode == Mode::kBandwidth ||
                           workload.working_set_bytes != 0)) {
      return absl::InvalidArgumentError(
          "--protobuf is for echoes of one payload");
    }
    if (workload.payload_bytes > UINT32_MAX ||
        RawPayloads::MemoryBytes(workload) > kPayloadBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "payloads can take up ", kPayloadBytes, " bytes at most"));
    }
    return absl::OkStatus();
  }

  SharedMemory* shared_ = nullptr;
  std::optional<FloorRun> run_;
};

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  benchmarks::FloorPeer peer;
  return benchmarks::PeerMain(argc, argv, peer);
}
