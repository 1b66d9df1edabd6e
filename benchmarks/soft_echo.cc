// What the software device itself costs: two processes on two CPUs, plain verbs
// and nothing on top.
//
//   bazel run -c opt //benchmarks:soft_echo -- --seconds=1
//
// prints the floor (two cache lines that carry a counter there and back, and
// nothing else), for SENDs of some sizes the round trip (p50 and p99 of means
// over 16 round trips, so that reading the clock does not count), the rate of
// 64 B SENDs with many in flight, and for READs of some sizes the bandwidth,
// out of memory that the reader's caches hold after the first round and out of
// more memory than they hold.
#include <gflags/gflags.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "benchmarks/cpu_pinning.h"
#include "benchmarks/latency_histogram.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/software/software_provider.h"

DEFINE_double(seconds, 1, "How long each measurement runs.");
DEFINE_int32(idle_connections, 0,
             "Connections beside the measured one, on the same CQs.");

namespace benchmarks {
namespace {

constexpr int kRoundTripsPerSample = 16;
constexpr uint32_t kSignalEvery = 32;
constexpr uint32_t kDepth = 128;
constexpr uint32_t kSlotBytes = 16 << 10;
constexpr size_t kBufferBytes = size_t{128} << 20;

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "soft_echo: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

// One side of one connection.
class Endpoint {
 public:
  Endpoint() {
    auto device = rdma::MakeSoftwareProvider()->Open(
        "soft0", {.single_threaded_queues = true});
    if (!device.ok()) Die("Open");
    device_ = *std::move(device);
    pd_ = device_->AllocPd();
    cq_ = device_->CreateCq(4 * kDepth, nullptr, nullptr, 0);
    memory_ = static_cast<char*>(
        device_->AllocateMemory(kBufferBytes, rdma::MemoryUse::kLocal));
    if (memory_ == nullptr) Die("AllocateMemory");
    mr_ = device_->RegMr(pd_, memory_, kBufferBytes,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_srq_init_attr srq = {};
    srq.attr = {.max_wr = 2 * kDepth, .max_sge = 1, .srq_limit = 0};
    srq_ = device_->CreateSrq(pd_, &srq);
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq_;
    init.srq = srq_;
    init.qp_type = IBV_QPT_RC;
    // Slots come free in steps of kSignalEvery, some turns after they could.
    init.cap.max_send_wr = 4 * kDepth;
    init.cap.max_send_sge = 1;
    init.cap.max_inline_data = device_->max_inline_data();
    qp_ = device_->CreateQp(pd_, &init);
    if (mr_ == nullptr || srq_ == nullptr || qp_ == nullptr) Die("set-up");
    for (int i = 0; i < FLAGS_idle_connections; ++i) {
      idle_.push_back(device_->CreateQp(pd_, &init));
      if (idle_.back() == nullptr) Die("CreateQp");
    }
    auto manager = device_->CreateConnectionManager();
    if (!manager.ok()) Die("CreateConnectionManager");
    manager_ = *std::move(manager);
    for (uint32_t i = 0; i < kDepth; ++i) Repost(i);
  }

  ~Endpoint() {
    device_->DestroyQp(qp_);
    for (ibv_qp* qp : idle_) device_->DestroyQp(qp);
    manager_.reset();
    device_->DestroySrq(srq_);
    device_->DestroyCq(cq_);
    device_->DeregMr(mr_);
    device_->FreeMemory(memory_, kBufferBytes);
    device_->DeallocPd(pd_);
  }

  uint16_t Listen() {
    const auto listener = manager_->Listen(
        *rdma::SocketAddress::FromNumeric("127.0.0.1", 0), 1, nullptr);
    if (!listener.ok()) Die("Listen");
    return (*listener)->local_address().port();
  }

  void Serve() {
    may_end_ = true;
    AcceptOne(qp_);
    for (ibv_qp* qp : idle_) AcceptOne(qp);
  }

  void Connect(uint16_t port) {
    const rdma::CmEvent event = ConnectOne(port, qp_);
    std::memcpy(&peer_, event.private_data.data(), sizeof(peer_));
    for (ibv_qp* qp : idle_) ConnectOne(port, qp);
  }

  // Sends bytes that are new in every cache line; inline where they fit.
  void Send(uint32_t bytes) {
    char* const payload = memory_ + kBufferBytes / 2;
    for (uint32_t at = 0; at < bytes; at += 64) {
      std::memcpy(payload + at, &sent_, sizeof(sent_));
    }
    ibv_sge sge = {reinterpret_cast<uint64_t>(payload), bytes, mr_->lkey};
    ibv_send_wr wr = {};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = bytes;
    if (bytes <= device_->max_inline_data()) wr.send_flags = IBV_SEND_INLINE;
    if (++sent_ % kSignalEvery == 0) {
      wr.send_flags |= IBV_SEND_SIGNALED;
      ++signals_;
    }
    ibv_send_wr* bad;
    errno = ibv_post_send(qp_, &wr, &bad);
    if (errno != 0) Die("ibv_post_send");
  }

  // Handles completions; returns how many messages came.
  int Poll() {
    ibv_wc completions[16];
    const int count = ibv_poll_cq(cq_, 16, completions);
    int received = 0;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions[i];
      if (completion.status != IBV_WC_SUCCESS) {
        if (!may_end_) Die("the other side is gone");
        over_ = true;
        return received;
      }
      if (completion.opcode == IBV_WC_RECV) {
        ++received;
        last_bytes_ = completion.imm_data;
        Repost(completion.wr_id);
      } else if (completion.opcode == IBV_WC_SEND) {
        --signals_;
      } else {
        --reads_;
      }
    }
    return received;
  }

  void Read(size_t offset, uint32_t bytes) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(memory_ + offset), bytes,
                   mr_->lkey};
    ibv_send_wr wr = {};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {peer_.address + offset, peer_.rkey};
    ibv_send_wr* bad;
    ++reads_;
    errno = ibv_post_send(qp_, &wr, &bad);
    if (errno != 0) Die("ibv_post_send");
  }

  bool over() const { return over_; }
  uint32_t last_bytes() const { return last_bytes_; }
  int reads() const { return reads_; }
  void PollEvents() {
    const auto event = manager_->GetEvent();
    if (event && event->type == rdma::CmEvent::Type::kDisconnected) {
      over_ = true;
    }
  }

 private:
  struct Memory {
    uint64_t address;
    uint32_t rkey;
  };

  void AcceptOne(ibv_qp* qp) {
    const rdma::CmEvent request = Await(rdma::CmEvent::Type::kConnectRequest);
    if (!manager_->Accept(request.id, qp, Parameters()).ok()) Die("Accept");
    Await(rdma::CmEvent::Type::kEstablished);
  }

  rdma::CmEvent ConnectOne(uint16_t port, ibv_qp* qp) {
    const auto id =
        manager_->Connect(*rdma::SocketAddress::FromNumeric("127.0.0.1", port),
                          qp, Parameters(), absl::Seconds(10), nullptr);
    if (!id.ok()) Die("Connect");
    return Await(rdma::CmEvent::Type::kEstablished);
  }

  void Repost(uint64_t slot) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(memory_) + slot * kSlotBytes,
                   kSlotBytes, mr_->lkey};
    ibv_recv_wr wr = {slot, nullptr, &sge, 1};
    ibv_recv_wr* bad;
    errno = ibv_post_srq_recv(srq_, &wr, &bad);
    if (errno != 0) Die("ibv_post_srq_recv");
  }

  rdma::ConnectionParameters Parameters() const {
    const Memory mine = {reinterpret_cast<uint64_t>(memory_), mr_->rkey};
    rdma::ConnectionParameters parameters;
    parameters.private_data.assign(reinterpret_cast<const char*>(&mine),
                                   sizeof(mine));
    parameters.rnr_retry_count = 7;
    return parameters;
  }

  rdma::CmEvent Await(rdma::CmEvent::Type type) {
    for (;;) {
      const auto event = manager_->GetEvent();
      if (!event) continue;
      if (event->type != type) Die(event->status.ToString().c_str());
      return *event;
    }
  }

  std::unique_ptr<rdma::Device> device_;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  char* memory_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  std::vector<ibv_qp*> idle_;
  std::unique_ptr<rdma::ConnectionManager> manager_;
  Memory peer_ = {};
  uint32_t sent_ = 0;
  uint32_t last_bytes_ = 0;
  int signals_ = 0;
  int reads_ = 0;
  bool may_end_ = false;  // the peer decides when
  bool over_ = false;
};

void RunServer(int port_pipe) {
  Endpoint endpoint;
  const uint16_t port = endpoint.Listen();
  if (write(port_pipe, &port, sizeof(port)) != sizeof(port)) Die("write");
  endpoint.Serve();
  uint32_t turns = 0;
  while (!endpoint.over()) {
    for (int left = endpoint.Poll(); left > 0; --left) {
      endpoint.Send(endpoint.last_bytes());
    }
    if (++turns % 4096 == 0) endpoint.PollEvents();
  }
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void MeasureLatency(Endpoint& endpoint, uint32_t bytes) {
  LatencyHistogram histogram;
  const auto start = Clock::now();
  while (SecondsSince(start) < FLAGS_seconds) {
    const auto before = Clock::now();
    for (int i = 0; i < kRoundTripsPerSample; ++i) {
      endpoint.Send(bytes);
      while (endpoint.Poll() == 0) {
      }
    }
    histogram.Add((Clock::now() - before) / kRoundTripsPerSample /
                  std::chrono::nanoseconds(1));
  }
  std::printf("send %6u B round trip   p50 %5lu ns   p99 %5lu ns\n", bytes,
              histogram.PercentileNs(0.5), histogram.PercentileNs(0.99));
}

void MeasureRate(Endpoint& endpoint, uint32_t in_flight) {
  const auto start = Clock::now();
  uint64_t done = 0;
  for (uint32_t i = 0; i < in_flight; ++i) endpoint.Send(64);
  uint32_t outstanding = in_flight;
  while (SecondsSince(start) < FLAGS_seconds) {
    for (int turn = 0; turn < 64; ++turn) {
      const int received = endpoint.Poll();
      for (int i = 0; i < received; ++i) endpoint.Send(64);
      done += received;
    }
  }
  const double rate = done / SecondsSince(start);
  while (outstanding != 0) outstanding -= endpoint.Poll();
  std::printf("send     64 B %3u in flight   %.2f M round trips a second\n",
              in_flight, rate / 1e6);
}

void MeasureRead(Endpoint& endpoint, uint32_t bytes, size_t span) {
  const auto start = Clock::now();
  uint64_t total = 0;
  size_t offset = 0;
  while (SecondsSince(start) < FLAGS_seconds) {
    endpoint.Read(offset, bytes);
    while (endpoint.reads() != 0) endpoint.Poll();
    total += bytes;
    offset = offset + 2 * bytes > span ? 0 : offset + bytes;
  }
  std::printf("read %8u B of %4zu MiB   %6.2f GB/s\n", bytes, span >> 20,
              total / SecondsSince(start) / 1e9);
}

// The least that any message there and back takes on these two CPUs.
struct FloorLines {
  alignas(64) std::atomic<uint64_t> there;
  alignas(64) std::atomic<uint64_t> back;
};
constexpr uint64_t kFloorRoundTrips = 200'000;

void ServeFloor(FloorLines& lines) {
  for (uint64_t i = 1; i <= kFloorRoundTrips; ++i) {
    while (lines.there.load(std::memory_order_acquire) != i) {
    }
    lines.back.store(i, std::memory_order_release);
  }
}

void MeasureFloor(FloorLines& lines) {
  LatencyHistogram histogram;
  for (uint64_t i = 1; i <= kFloorRoundTrips;) {
    const auto before = Clock::now();
    for (int turn = 0; turn < kRoundTripsPerSample; ++turn, ++i) {
      lines.there.store(i, std::memory_order_release);
      while (lines.back.load(std::memory_order_acquire) != i) {
      }
    }
    histogram.Add((Clock::now() - before) / kRoundTripsPerSample /
                  std::chrono::nanoseconds(1));
  }
  std::printf("floor    8 B round trip   p50 %5lu ns   p99 %5lu ns\n",
              histogram.PercentileNs(0.5), histogram.PercentileNs(0.99));
}
static_assert(kFloorRoundTrips % kRoundTripsPerSample == 0);

int Main() {
  const std::vector<int> cpus = AllowedCpus();
  void* const shared = mmap(nullptr, sizeof(FloorLines), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) Die("mmap");
  auto& floor_lines = *new (shared) FloorLines{};
  int pipes[2];
  if (pipe(pipes) != 0) Die("pipe");
  const pid_t child = fork();
  if (child == 0) {
    if (cpus.size() > 1 && !PinTo(cpus[1]).ok()) Die("PinTo");
    ServeFloor(floor_lines);
    RunServer(pipes[1]);
    return 0;
  }
  if (!PinTo(cpus[0]).ok()) Die("PinTo");
  MeasureFloor(floor_lines);
  uint16_t port;
  if (read(pipes[0], &port, sizeof(port)) != sizeof(port)) Die("read");
  {
    Endpoint endpoint;
    endpoint.Connect(port);
    std::printf("%d idle connections\n", FLAGS_idle_connections);
    for (uint32_t bytes : {0u, 32u, 56u, 64u, 128u, 256u, 512u, 1024u, 8192u}) {
      MeasureLatency(endpoint, bytes);
    }
    for (uint32_t in_flight : {1u, 8u, 64u}) MeasureRate(endpoint, in_flight);
    constexpr uint32_t kMiB = 1 << 20;
    MeasureRead(endpoint, kMiB, kMiB);
    MeasureRead(endpoint, kMiB, kBufferBytes);
    MeasureRead(endpoint, 16 * kMiB, 16 * kMiB);
    MeasureRead(endpoint, 16 * kMiB, kBufferBytes);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  gflags::SetUsageMessage("measures the software device with plain verbs");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return benchmarks::Main();
}
