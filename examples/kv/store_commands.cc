#include "examples/kv/store_commands.h"

#include <gflags/gflags.h>

#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "examples/kv/format.h"
#include "nlohmann/json.hpp"

DECLARE_bool(json);

DEFINE_bool(long, false, "list: also bytes and version of each key");
DEFINE_uint32(page_size, 0,
              "list: keys asked for at once; 0: the server's choice");

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

// Keys may hold any byte, and JSON only Unicode: keys are told as Printable.
void PrintEntry(const ListResponse::Entry& entry) {
  const std::string key = Printable(entry.key());
  if (FLAGS_json) {
    const Json line = {{"key", key},
                       {"bytes", entry.value_bytes()},
                       {"version", entry.version()}};
    absl::PrintF("%s\n", line.dump());
  } else if (FLAGS_long) {
    absl::PrintF("%12d  %16d  %s\n", entry.value_bytes(), entry.version(), key);
  } else {
    absl::PrintF("%s\n", key);
  }
}

ExitCode RunList(Client& client, const Arguments& arguments) {
  const std::string prefix = arguments.empty() ? "" : arguments[0];
  std::string token;
  do {
    absl::StatusOr<ListResponse> page =
        client.List(prefix, FLAGS_page_size, token);
    if (!page.ok()) return CallFailed(page.status());
    for (const ListResponse::Entry& entry : page->entries()) PrintEntry(entry);
    token = std::move(*page->mutable_next_page_token());
  } while (!token.empty());
  return kExitOk;
}

void PrintStatsJson(const StatsResponse& stats) {
  const Json line = {
      {"command", "stats"},
      {"keys", stats.keys()},
      {"value_bytes", stats.value_bytes()},
      {"memory_used_bytes", stats.memory_used_bytes()},
      {"memory_limit_bytes", stats.memory_limit_bytes()},
      {"gets", stats.gets()},
      {"hits", stats.hits()},
      {"puts", stats.puts()},
      {"deletes", stats.deletes()},
      {"compare_and_swaps", stats.compare_and_swaps()},
      {"lists", stats.lists()},
      {"rejected_for_memory", stats.rejected_for_memory()},
      {"messages_eager", stats.messages_eager()},
      {"messages_rendezvous", stats.messages_rendezvous()},
      {"device", stats.device()},
      {"uptime_ms", stats.uptime_ms()},
  };
  absl::PrintF("%s\n", line.dump());
}

void PrintStatsText(const StatsResponse& stats) {
  absl::PrintF("keys                 %d\n", stats.keys());
  absl::PrintF("values               %s\n", FormatBytes(stats.value_bytes()));
  absl::PrintF("memory               %s of %s\n",
               FormatBytes(stats.memory_used_bytes()),
               FormatBytes(stats.memory_limit_bytes()));
  absl::PrintF("gets                 %d (%d found their key)\n", stats.gets(),
               stats.hits());
  absl::PrintF("puts                 %d\n", stats.puts());
  absl::PrintF("deletes              %d\n", stats.deletes());
  absl::PrintF("compare-and-swaps    %d\n", stats.compare_and_swaps());
  absl::PrintF("lists                %d\n", stats.lists());
  absl::PrintF("rejected for memory  %d\n", stats.rejected_for_memory());
  absl::PrintF("messages             %d eager, %d by rendezvous\n",
               stats.messages_eager(), stats.messages_rendezvous());
  absl::PrintF("device               %s\n", stats.device());
  absl::PrintF("up for               %s\n",
               FormatTimeLeft(absl::Milliseconds(stats.uptime_ms())));
}

ExitCode RunStats(Client& client, const Arguments&) {
  const absl::StatusOr<StatsResponse> stats = client.Stats();
  if (!stats.ok()) return CallFailed(stats.status());
  if (FLAGS_json) {
    PrintStatsJson(*stats);
  } else {
    PrintStatsText(*stats);
  }
  return kExitOk;
}

}  // namespace

const Command kListCommand = {
    .name = "list",
    .arguments = "[PREFIX] [--long] [--json]",
    .summary = "lists the keys, or those with a prefix, in order",
    .details =
        "One key a line. Control characters, bytes that are no UTF-8, and "
        "backslashes are\nwritten as \\n, \\x1b, \\\\. --long puts bytes and "
        "version in front; --json makes\neach line an object.",
    .min_arguments = 0,
    .max_arguments = 1,
    .run = RunList,
};

const Command kStatsCommand = {
    .name = "stats",
    .arguments = "[--json]",
    .summary = "shows what the server holds and has done",
    .details = "",
    .min_arguments = 0,
    .max_arguments = 0,
    .run = RunStats,
};

}  // namespace kv
