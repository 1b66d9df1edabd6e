// grpc_bench: the calls of rpc_bench by gRPC, over a Unix socket.
//
//   grpc_bench --mode=latency
//   grpc_bench --mode=rate --concurrency=1,8,64
//   grpc_bench --mode=bandwidth --payload_bytes=1M,16M [--raw]
//
// The messages are those of rpc_bench.proto, and so are the checks: each answer
// tells the right size, and some (all of the small ones) the right contents; a
// Put of those is a PutChecked.
//
// latency: the synchronous stub, which polls in the thread that calls. rate and
// bandwidth: --concurrency calls in flight, made with the callback API or with
// the async one and a single thread. A call's time is from just before it is
// made until its callback runs, or it comes out of the queue: with protobuf's
// work on both sides, without filling the payload and checking the answer.
//
// --raw: the payload is no protobuf message, but bytes that gRPC sends by
// reference (a static grpc::Slice) and hands to the server as they came, in
// slices of its own: what an application gets that goes without protobuf to
// save its copies, one at either side.
//
// All is set in gRPC's favour (grpc_settings.h, KeepMemory below), on one
// connection, without TLS. Its other threads share the CPUs that the two
// processes are bound to.
#include <malloc.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "benchmarks/peers/grpc_client.h"
#include "benchmarks/peers/grpc_server.h"
#include "benchmarks/peers/peer_main.h"
#include "gflags/gflags.h"

DECLARE_string(mode);

DEFINE_string(server_api, "",
              "what the server is written with: sync, callback or async; "
              "default: the fastest, async for latency, else callback");
DEFINE_string(client_api, "callback",
              "what calls in flight are made with: callback or async");
DEFINE_bool(raw, false,
            "--mode=bandwidth: bytes by reference (grpc::ByteBuffer) in place "
            "of protobuf messages");

namespace benchmarks {
namespace {

absl::StatusOr<GrpcApi> ParseApi(const std::string& flag,
                                 const std::string& text, bool sync) {
  if (text == "async") return GrpcApi::kAsync;
  if (text == "callback") return GrpcApi::kCallback;
  if (text == "sync" && sync) return GrpcApi::kSync;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", text, ": takes ", sync ? "sync, " : "",
                   "callback or async"));
}

// One call after the other is fastest with a single thread; many are with two,
// which the callback API has.
std::string ServerApi() {
  if (!FLAGS_server_api.empty()) return FLAGS_server_api;
  return FLAGS_mode == "latency" ? "async" : "callback";
}

// Memory that is given back is kept for the next call, be it large: otherwise
// each large message pays for fresh pages. gRPC is not to wait for those.
void KeepMemory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

constexpr char kScheme[] = "unix:";

absl::StatusOr<std::string> MakeDirectory() {
  std::string path =
      std::filesystem::temp_directory_path() / "grpc_bench.XXXXXX";
  if (mkdtemp(path.data()) != nullptr) return path;
  return absl::ErrnoToStatus(errno, absl::StrCat("mkdtemp ", path));
}

std::string SocketDirectory(const std::string& address) {
  return std::filesystem::path(std::string(absl::StripPrefix(address, kScheme)))
      .parent_path();
}

void RemoveDirectory(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

class GrpcPeer final : public Peer {
 public:
  std::string name() const override {
    return FLAGS_raw ? "grpc unix socket raw" : "grpc unix socket";
  }

  absl::Status Serve(const std::function<void(const std::string&)>& ready,
                     int stop_fd) override {
    const auto api = ParseApi("server_api", ServerApi(), /*sync=*/true);
    if (!api.ok()) return api.status();
    const absl::StatusOr<std::string> directory = MakeDirectory();
    if (!directory.ok()) return directory.status();
    KeepMemory();
    const std::string address = absl::StrCat(kScheme, *directory, "/socket");
    const absl::Status status = ServeGrpc(
        {.address = address, .api = *api, .raw = FLAGS_raw},
        [&] { ready(address); }, stop_fd);
    RemoveDirectory(*directory);
    return status;
  }

  absl::Status Connect(const std::string& address) override {
    const auto api = ParseApi("client_api", FLAGS_client_api, /*sync=*/false);
    if (!api.ok()) return api.status();
    options_ = {.api = *api, .raw = FLAGS_raw};
    KeepMemory();
    auto channel = ConnectGrpc(address);
    if (!channel.ok()) return channel.status();
    channel_ = *std::move(channel);
    // Nobody else is to connect. So nothing stays behind, even if the processes
    // are killed.
    RemoveDirectory(SocketDirectory(address));
    return absl::OkStatus();
  }

  absl::Status Prepare(const PeerWorkload& workload) override {
    absl::StatusOr<GrpcRun> run = PrepareGrpc(channel_, options_, workload);
    if (run.ok()) run_ = *std::move(run);
    return run.status();
  }

  absl::Status Run(const PeerWorkload&, Recorder& recorder) override {
    run_(recorder);
    return absl::OkStatus();
  }

 private:
  GrpcClientOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  GrpcRun run_;  // what was prepared
};

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  benchmarks::GrpcPeer peer;
  return benchmarks::PeerMain(argc, argv, peer);
}
