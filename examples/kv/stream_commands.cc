#include "examples/kv/stream_commands.h"

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "examples/kv/format.h"
#include "examples/kv/limits.h"
#include "examples/kv/value_of_file.h"
#include "nlohmann/json.hpp"

DECLARE_bool(json);

DEFINE_bool(present, false, "watch: first the keys that there are");
DEFINE_bool(values, false, "watch: also values of up to 4096 bytes");
DEFINE_uint64(count, 0, "watch: end after so many changes; 0: never");

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

const char* NameOf(WatchEvent::Kind kind) {
  switch (kind) {
    case WatchEvent::PUT:
      return "put";
    case WatchEvent::DELETED:
      return "deleted";
    case WatchEvent::SYNCED:
      return "synced";
    case WatchEvent::LOST:
      return "lost";
    default:
      return "unknown";  // of a newer server
  }
}

bool HasKey(const WatchEvent& event) {
  return event.kind() == WatchEvent::PUT || event.kind() == WatchEvent::DELETED;
}

void PrintJson(const WatchEvent& event, const std::string& value) {
  Json line = {{"event", NameOf(event.kind())}};
  if (HasKey(event)) {
    line["key"] = Printable(event.key());
    line["version"] = event.version();
    line["bytes"] = event.value_bytes();
  }
  if (event.value_case() != WatchEvent::VALUE_NOT_SET) {
    line["value"] = Printable(value);
  }
  if (event.kind() == WatchEvent::LOST) line["lost"] = event.lost();
  absl::PrintF("%s\n", line.dump());
}

void PrintText(const WatchEvent& event, const std::string& value) {
  absl::PrintF("%s", NameOf(event.kind()));
  if (HasKey(event)) {
    absl::PrintF(" %s (version %d, %d bytes)", Printable(event.key()),
                 event.version(), event.value_bytes());
  }
  if (event.value_case() != WatchEvent::VALUE_NOT_SET) {
    absl::PrintF(": %s", Printable(value));
  }
  if (event.kind() == WatchEvent::LOST) {
    absl::PrintF(" %d changes", event.lost());
  }
  absl::PrintF("\n");
}

ExitCode RunWatch(Client& client, const Arguments& arguments) {
  WatchRequest request;
  if (!arguments.empty()) request.set_prefix(arguments[0]);
  request.set_present_first(FLAGS_present);
  if (FLAGS_values) request.set_max_value_bytes(kMaxInlineValueBytes);
  uint64_t changes = 0;
  bool synced = false;
  const absl::Status status = client.Watch(
      request, [&](const WatchEvent& event, const rpc::BufferChain& value) {
        (FLAGS_json ? PrintJson : PrintText)(event, value.ToString());
        // Whoever reads this waits for it.
        std::fflush(stdout);
        if (synced) changes += event.lost() + (HasKey(event) ? 1 : 0);
        synced |= event.kind() == WatchEvent::SYNCED;
        return FLAGS_count == 0 || changes < FLAGS_count;
      });
  return status.ok() ? kExitOk : CallFailed(status);
}

// What can be told before the files are read: for the deadline.
uint64_t BytesOf(const Arguments& paths) {
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (!error) bytes += size;
  }
  return bytes;
}

ExitCode RunUpload(Client& client, const Arguments& arguments) {
  Client::Loading loading(client, BytesOf(arguments));
  for (const std::string& path : arguments) {
    absl::StatusOr<rpc::BufferChain> value = ValueOfFile(client, path);
    if (!value.ok()) return FileFailed(value.status());
    if (!loading.Put(path, *std::move(value))) break;
  }
  const absl::StatusOr<LoadSummary> summary = loading.Finish();
  if (!summary.ok()) return CallFailed(summary.status());
  absl::PrintF("%d keys, %s\n", summary->keys(),
               FormatBytes(summary->value_bytes()));
  return kExitOk;
}

}  // namespace

const Command kWatchCommand = {
    .name = "watch",
    .arguments = "[PREFIX] [--present] [--values] [--count N] [--json]",
    .summary = "prints what changes, as it changes",
    .details =
        "One line a change of a key, or of one with the prefix: put or "
        "deleted. \"synced\" is\nprinted once, when every change from then on "
        "will be; with --present, the keys that\nthere are come before it. "
        "\"lost\": changes came faster than they were printed.\nKeys and "
        "values "
        "are written as by list. Ends with the server, or after --count "
        "changes.",
    .min_arguments = 0,
    .max_arguments = 1,
    .run = RunWatch,
};

const Command kUploadCommand = {
    .name = "upload",
    .arguments = "FILE...",
    .summary = "sets the keys FILE to the files' bytes, all in one call",
    .details =
        "Keys are the names as they are given. Where a file cannot be read or "
        "the server\nrefuses one, the rest is left out. See load for "
        "directories.",
    .min_arguments = 1,
    .max_arguments = kAnyNumber,
    .run = RunUpload,
};

}  // namespace kv
