// `kv_server`, the key-value server. See `kv_server --help`.
//
// Prints one line, "listening on ADDRESS (device NAME)", when it is ready. On
// SIGINT or SIGTERM it takes no more calls, lets running ones finish, and exits
// with 0; a second signal ends it at once.
#include <gflags/gflags.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/kv/kv_service.h"
#include "examples/kv/storage.h"
#include "rdma_transport/statistics.h"
#include "rpc/rpc.h"

DEFINE_string(address, "rdma://127.0.0.1:50051",
              "where to listen: rdma://HOST:PORT; port 0 picks a free one, "
              "0.0.0.0 and [::] are all of this host's addresses");
DEFINE_string(device, "auto",
              "\"auto\", \"soft\" (the software device, same host), or a verbs "
              "device's name");
DEFINE_uint64(memory_limit_bytes, 0,
              "most memory for keys and values; beyond it Put fails with "
              "RESOURCE_EXHAUSTED; 0: half of this machine's memory");
DEFINE_int32(shards, 16, "shards of the storage, 1 to 4096");
DEFINE_double(drain_seconds, 10,
              "how long running calls may take once the server is to end");
DEFINE_bool(allow_other_users, false,
            "the software device: let processes of other users connect");

DECLARE_bool(help);
DECLARE_bool(helpshort);

namespace kv {
namespace {

enum ExitCode : int { kExitOk = 0, kExitUsage = 1, kExitCannotServe = 2 };

// Registered memory for values that are on their way in or out, on top of those
// that are stored: a quarter of the limit, so that a store near its limit still
// takes a large value's replacement.
constexpr uint64_t kLeastInFlightBytes = uint64_t{256} << 20;

void PrintUsage() {
  absl::PrintF(
      "kv_server keeps keys and values in memory and serves them over RDMA.\n\n"
      "Usage: kv_server [FLAGS]\n\nFlags:\n");
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (flag.filename.find("examples/kv/") == std::string::npos) continue;
    absl::PrintF("  --%s=%s\n        %s\n", flag.name, flag.default_value,
                 flag.description);
  }
  absl::PrintF(
      "\nExit status: 0 after SIGINT or SIGTERM, 1 for a wrong command line, 2 "
      "where it\ncannot serve (the port is in use, there is no such "
      "device).\n");
}

void PrintError(const std::string& text) {
  absl::FPrintF(stderr, "kv_server: %s\n", text);
}

uint64_t MemoryOfMachine() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t MemoryLimit() {
  return FLAGS_memory_limit_bytes != 0 ? FLAGS_memory_limit_bytes
                                       : MemoryOfMachine() / 2;
}

// Empty, or what is wrong with the command line.
std::string CheckFlags(int argc) {
  if (argc > 1) return "takes flags only: see kv_server --help";
  if (FLAGS_shards < 1 || FLAGS_shards > 4096) {
    return "--shards must be 1 to 4096";
  }
  if (!(FLAGS_drain_seconds >= 0))
    return "--drain_seconds must not be negative";
  return "";
}

// FLAGS_address with the port that was picked where it asks for any.
std::string AddressWithPort(int port) {
  const size_t colon = FLAGS_address.rfind(':');
  return absl::StrCat(FLAGS_address.substr(0, colon), ":", port);
}

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// Blocks until the process is asked to end; from then on a signal kills it.
void WaitForEndSignal() {
  const sigset_t signals = EndSignals();
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  // A parent may have started this process with SIGINT ignored.
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  absl::FPrintF(stderr, "kv_server: %s: ending\n", strsignal(signal));
}

TransportFacts FactsOf(const rpc::Server& server) {
  const rdma::TransportStatistics counts = rdma::GetTransportStatistics();
  return {.device = server.device(),
          .messages_eager =
              counts.eager_messages_sent + counts.eager_messages_received,
          .messages_rendezvous = counts.rendezvous_messages_sent +
                                 counts.rendezvous_messages_received};
}

ExitCode Serve() {
  const uint64_t limit = MemoryLimit();
  Storage storage(
      {.shards = FLAGS_shards,
       .memory_limit_bytes = limit,
       // Never those of a run before this one.
       .version_base = static_cast<uint64_t>(absl::ToUnixMicros(absl::Now()))});
  std::unique_ptr<rpc::Server> server;
  // Calls may come before the builder has given us the server.
  absl::Notification has_server;
  KeyValueService service(&storage, [&server, &has_server] {
    has_server.WaitForNotification();
    return FactsOf(*server);
  });

  // For rpc_cli: `rpc_cli describe ADDRESS` shows what can be called.
  rpc::reflection::InitProtoReflectionServerBuilderPlugin();
  int port = 0;
  rpc::ServerBuilder builder;
  builder.AddListeningPort(FLAGS_address, rpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  builder.AddChannelArgument("verbena.device", FLAGS_device);
  builder.AddChannelArgument(
      "verbena.memory_budget_bytes",
      static_cast<int64_t>(limit + std::max(limit / 4, kLeastInFlightBytes)));
  builder.AddChannelArgument("verbena.allow_other_users",
                             FLAGS_allow_other_users ? 1 : 0);
  absl::StatusOr<std::unique_ptr<rpc::Server>> built =
      builder.BuildAndStartOrStatus();
  if (!built.ok()) {
    PrintError(absl::StrCat(FLAGS_address, ": ", built.status().ToString()));
    return kExitCannotServe;
  }
  server = *std::move(built);
  has_server.Notify();

  absl::PrintF("listening on %s (device %s)\n", AddressWithPort(port),
               server->device());
  std::fflush(stdout);
  WaitForEndSignal();
  service.EndWatches();
  server->Shutdown(absl::Now() + absl::Seconds(FLAGS_drain_seconds));
  return kExitOk;
}

}  // namespace
}  // namespace kv

int main(int argc, char** argv) {
  gflags::ParseCommandLineNonHelpFlags(&argc, &argv, /*remove_flags=*/true);
  if (FLAGS_help || FLAGS_helpshort) {
    kv::PrintUsage();
    return kv::kExitOk;
  }
  gflags::HandleCommandLineHelpFlags();
  if (const std::string wrong = kv::CheckFlags(argc); !wrong.empty()) {
    kv::PrintError(wrong);
    return kv::kExitUsage;
  }
  // Before any thread is made: they all inherit it, and the signals wait for
  // WaitForEndSignal.
  const sigset_t signals = kv::EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return kv::Serve();
}
