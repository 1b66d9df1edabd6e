#include "examples/kv/tree_commands.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/kv/format.h"
#include "examples/kv/load.h"
#include "examples/kv/progress.h"
#include "examples/kv/tree.h"
#include "examples/kv/tree_keys.h"
#include "examples/kv/verify.h"
#include "nlohmann/json.hpp"

DECLARE_bool(json);

DEFINE_string(key_prefix, "",
              "load, verify: bytes in front of every key of the tree");
DEFINE_bool(relative, false,
            "load, verify: keys are the names inside DIR, without DIR");
DEFINE_int32(inflight, 64, "load: most Puts in flight");
DEFINE_uint64(inflight_bytes, uint64_t{256} << 20,
              "load: most bytes of values in flight; a larger file goes alone");
DEFINE_int32(threads, 2, "verify: threads, each with one Get at a time");

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

double GigabytesPerSecond(uint64_t bytes, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

// Walks DIR and tells what is left out of it.
absl::StatusOr<Tree> FindFiles(const std::string& directory) {
  absl::StatusOr<Tree> tree = WalkTree(directory);
  if (!tree.ok()) return tree;
  for (const FileProblem& problem : tree->problems) {
    PrintError(
        absl::StrCat(Printable(problem.path), ": ", problem.status.message()));
  }
  if (tree->skipped_links + tree->skipped_special > 0) {
    PrintError(absl::StrFormat(
        "%s: left out %d symbolic links and %d devices, FIFOs and sockets",
        Printable(tree->root), tree->skipped_links, tree->skipped_special));
  }
  return tree;
}

// What a command has done so far, over its directories.
template <typename Report>
struct Totals {
  uint64_t files = 0;   // found on disk
  uint64_t unread = 0;  // entries of trees that could not be read
  uint64_t skipped_links = 0;
  uint64_t skipped_special = 0;
  absl::Duration time = absl::ZeroDuration();
  Report report;

  void AddTree(const Tree& tree) {
    files += tree.files.size();
    unread += tree.problems.size();
    skipped_links += tree.skipped_links;
    skipped_special += tree.skipped_special;
  }
};

// Runs `work(tree, key base, progress)`, which returns a Report, for one
// directory after the other, until one ends early.
template <typename Report, typename Work>
absl::StatusOr<Totals<Report>> ForEachTree(const Arguments& directories,
                                           const char* verb, Work work) {
  Totals<Report> totals;
  for (const std::string& directory : directories) {
    const absl::StatusOr<Tree> tree = FindFiles(directory);
    if (!tree.ok()) return tree.status();
    totals.AddTree(*tree);
    Progress progress(verb, tree->files.size(), tree->total_bytes,
                      Progress::OptionsFor(stderr));
    const absl::Time start = absl::Now();
    totals.report.Add(work(
        *tree, KeyBaseOf(*tree, FLAGS_key_prefix, FLAGS_relative), progress));
    totals.time += absl::Now() - start;
    progress.Finish();
    if (!totals.report.fatal.ok()) break;
  }
  return totals;
}

// Relative keys of two trees would mix.
bool CheckRelative(const Arguments& directories) {
  if (!FLAGS_relative || directories.size() == 1) return true;
  PrintError("--relative takes one DIR: the keys of several would mix");
  return false;
}

void PrintLoadSummary(const Client& client, const Totals<LoadReport>& totals) {
  const LoadReport& report = totals.report;
  const uint64_t failed = report.failed_files + totals.unread;
  if (FLAGS_json) {
    const Json line = {
        {"command", "load"},
        {"address", client.address()},
        {"files", report.files},
        {"bytes", report.bytes},
        {"failed", failed},
        {"skipped_links", totals.skipped_links},
        {"skipped_special", totals.skipped_special},
        {"seconds", absl::ToDoubleSeconds(totals.time)},
        {"gigabytes_per_s", GigabytesPerSecond(report.bytes, totals.time)},
        {"complete", report.fatal.ok() && failed == 0},
    };
    absl::PrintF("%s\n", line.dump());
    return;
  }
  absl::PrintF("loaded %d of %d files, %s in %.1f s (%s)\n", report.files,
               totals.files, FormatBytes(report.bytes),
               absl::ToDoubleSeconds(totals.time),
               FormatRate(GigabytesPerSecond(report.bytes, totals.time) * 1e9));
}

ExitCode RunLoad(Client& client, const Arguments& directories) {
  if (!CheckRelative(directories)) return kExitUsage;
  const LoadOptions options = {
      .max_calls_in_flight = std::max(FLAGS_inflight, 1),
      .max_bytes_in_flight = FLAGS_inflight_bytes};
  const absl::StatusOr<Totals<LoadReport>> totals = ForEachTree<LoadReport>(
      directories, "loading",
      [&](const Tree& tree, std::string_view key_base, Progress& progress) {
        return LoadTree(client, tree, key_base, options, progress);
      });
  if (!totals.ok()) return FileFailed(totals.status());
  PrintLoadSummary(client, *totals);
  if (!totals->report.fatal.ok()) return CallFailed(totals->report.fatal);
  return totals->report.failed_files + totals->unread == 0 ? kExitOk
                                                           : kExitLocal;
}

void PrintVerifySummary(const Client& client,
                        const Totals<VerifyReport>& totals) {
  const VerifyReport& report = totals.report;
  const absl::Duration p50 = report.get_latencies.Percentile(0.5);
  const absl::Duration p99 = report.get_latencies.Percentile(0.99);
  const uint64_t unreadable = report.unreadable_files + totals.unread;
  const double get_rate = GigabytesPerSecond(report.bytes, report.time_in_gets);
  if (FLAGS_json) {
    const Json line = {
        {"command", "verify"},
        {"address", client.address()},
        {"files", totals.files},
        {"bytes", report.bytes},
        {"same", report.same_files},
        {"different", report.different_files},
        {"missing", report.missing_files},
        {"unreadable", unreadable},
        {"extra", report.extra_keys},
        {"seconds", absl::ToDoubleSeconds(totals.time)},
        {"gigabytes_per_s", GigabytesPerSecond(report.bytes, totals.time)},
        {"gets", report.get_latencies.count()},
        {"get_p50_us", absl::ToDoubleMicroseconds(p50)},
        {"get_p99_us", absl::ToDoubleMicroseconds(p99)},
        {"get_gigabytes_per_s", get_rate},
        {"all_same", report.all_same() && totals.unread == 0},
    };
    absl::PrintF("%s\n", line.dump());
    return;
  }
  absl::PrintF(
      "verified %d of %d files, %s in %.1f s: %d differ, %d missing, "
      "%d unreadable, %d keys without a file\n"
      "Get: p50 %s, p99 %s, %s\n",
      report.same_files, totals.files, FormatBytes(report.bytes),
      absl::ToDoubleSeconds(totals.time), report.different_files,
      report.missing_files, unreadable, report.extra_keys, FormatLatency(p50),
      FormatLatency(p99), FormatRate(get_rate * 1e9));
}

ExitCode RunVerify(Client& client, const Arguments& directories) {
  if (!CheckRelative(directories)) return kExitUsage;
  const VerifyOptions options = {.threads = std::clamp(FLAGS_threads, 1, 1024)};
  const absl::StatusOr<Totals<VerifyReport>> totals = ForEachTree<VerifyReport>(
      directories, "verifying",
      [&](const Tree& tree, std::string_view key_base, Progress& progress) {
        return VerifyTree(client, tree, key_base, options, progress);
      });
  if (!totals.ok()) return FileFailed(totals.status());
  PrintVerifySummary(client, *totals);
  const VerifyReport& report = totals->report;
  if (!report.fatal.ok()) return CallFailed(report.fatal);
  if (report.different_files + report.missing_files + report.extra_keys > 0) {
    return kExitNegative;
  }
  return report.unreadable_files + totals->unread == 0 ? kExitOk : kExitLocal;
}

}  // namespace

const Command kLoadCommand = {
    .name = "load",
    .arguments = "DIR... [--relative] [--key_prefix P] [--json]",
    .summary = "puts every regular file of directory trees",
    .details =
        "A file's key is its path, as DIR was given; --relative leaves DIR "
        "away. Symbolic\nlinks, devices, FIFOs and sockets inside DIR are left "
        "out and counted. Files that\ncannot be read, vanish, or change while "
        "they are read are named, the others are\nloaded, and the exit status "
        "is 5.",
    .min_arguments = 1,
    .max_arguments = kAnyNumber,
    .run = RunLoad,
};

const Command kVerifyCommand = {
    .name = "verify",
    .arguments = "DIR... [--relative] [--key_prefix P] [--json]",
    .summary = "compares directory trees with the store, byte for byte",
    .details =
        "Reads every value back and compares its SHA-256 with that of the file "
        "as it is\nnow. Files that differ or are missing in the store, and "
        "keys "
        "below DIR that no\nfile has, are named, and the exit status is 2. "
        "Give the flags that load was given.",
    .min_arguments = 1,
    .max_arguments = kAnyNumber,
    .run = RunVerify,
};

}  // namespace kv
