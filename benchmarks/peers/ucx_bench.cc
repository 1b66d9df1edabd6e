// UCX (OpenUCX, UCP): active messages over shared memory, the fastest that it
// has between two processes of one host.
//
//   bazel run -c opt //benchmarks/peers:ucx_bench -- --payload_bytes=64,8K
//
// What a reader has to know to compare:
//  - UCX moves messages; it is no RPC library. Nothing here serializes, looks
//  up
//    methods, keeps deadlines or serves a second client. A message has 8 bytes
//    of header (which call, how many bytes), which any use of more than one
//    message in flight needs.
//  - One worker on each side, UCS_THREAD_MODE_SINGLE, ucp_worker_progress in a
//    loop that never sleeps: UCX's favourite case. No error handling of
//    endpoints, which allows it all transports.
//  - Transports: --ucx_tls, of which UCX chooses. With the default it sends
//    small messages through FIFOs in memory that both sides have mapped (eager:
//    copied in by the sender, out by the receiver), and larger ones by
//    rendezvous: the receiver copies once, by process_vm_readv (CMA). Where it
//    changes over is UCX's own choice (UCX_RNDV_THRESH and the like work).
//    xpmem, which would do without the kernel, is no part of Debian.
//  - The server answers to an endpoint that the client's first message brought
//    (UCP_AM_SEND_FLAG_REPLY); it need not come with each message.
//
// latency and rate: an active message of payload_bytes there, and one of the
// same size back. Eager data is echoed right out of UCX's receive buffer, out
// of the callback. The client copies what it gets into a buffer of its own, as
// else nobody would have read it; --leave_data leaves it in UCX's buffer, as
// UCX's own ucx_perftest does. Rendezvous is fetched into buffers that are
// there before. In rate mode the clock is read once for all answers of one call
// of ucp_worker_progress.
//
// rate with --one_way: messages go one way only, as in the "5.9 M messages/s"
// that is told of UCX. That is no rate of calls: nothing comes back but one
// message for 64. Up to 256 are on their way, --concurrency does not count, and
// a "latency" is that of 64 messages until they are acknowledged. Beware of
// gigabytes_per_s in these lines: it counts both ways, as for echoes.
//
// bandwidth: the payload one way, an active message of 8 bytes back when all of
// it has arrived in the server's memory, in one buffer for each call in flight.
//
// Sizes are checked with each message, and contents with every 256th: of an
// echo by comparing, of a bandwidth call by a checksum that the server makes.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/peers/peer_main.h"
#include "benchmarks/peers/ucx_client.h"
#include "benchmarks/peers/ucx_server.h"
#include "benchmarks/recorder.h"

namespace benchmarks {
namespace {

constexpr size_t kMostOneWayBytes = 64 << 10;

class UcxPeer final : public Peer {
 public:
  std::string name() const override {
    return FLAGS_one_way ? "ucx one way" : "ucx";
  }

  absl::Status Serve(const std::function<void(const std::string&)>& ready,
                     int stop_fd) override {
    UcxServer server;
    const absl::StatusOr<std::string> address = server.Open();
    if (!address.ok()) return address.status();
    ready(*address);
    return server.Run(stop_fd);
  }

  absl::Status Connect(const std::string& address) override {
    return client_.Connect(address);
  }

  absl::Status Prepare(const PeerWorkload& workload) override {
    if (absl::Status status = CheckWorkload(workload); !status.ok()) {
      return status;
    }
    return client_.Prepare(workload);
  }

  absl::Status Run(const PeerWorkload&, Recorder& recorder) override {
    return FLAGS_one_way ? client_.RunOneWay(recorder)
                         : client_.RunCalls(recorder);
  }

 private:
  static absl::Status CheckWorkload(const PeerWorkload& workload) {
    if (workload.concurrency < 1 || workload.payload_bytes > UINT32_MAX) {
      return absl::InvalidArgumentError("no such workload");
    }
    if (FLAGS_one_way && (workload.mode != PeerWorkload::Mode::kRate ||
                          workload.payload_bytes > kMostOneWayBytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--one_way takes --mode=rate and payloads of up to ",
                       kMostOneWayBytes, " bytes"));
    }
    return absl::OkStatus();
  }

  UcxClient client_;
};

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  benchmarks::UcxPeer peer;
  return benchmarks::PeerMain(argc, argv, peer);
}
