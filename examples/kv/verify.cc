#include "examples/kv/verify.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "examples/kv/format.h"
#include "examples/kv/sha256.h"
#include "examples/kv/source_file.h"

namespace kv {
namespace {

// A file that is being written is tried so often; then it is a problem.
constexpr int kReadAttempts = 3;

struct FileDigest {
  Sha256Digest digest;
  uint64_t bytes = 0;
};

// The digest of a file that did not change meanwhile; ABORTED: it did.
absl::StatusOr<FileDigest> DigestOnce(const std::string& path) {
  const absl::StatusOr<SourceFile> file =
      SourceFile::Open(path, /*follow_links=*/false);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Sha256Digest> digest = file->Digest();
  if (!digest.ok()) return digest.status();
  if (absl::Status status = file->CheckUnchanged(); !status.ok()) return status;
  return FileDigest{*digest, file->size()};
}

absl::StatusOr<FileDigest> DigestOfFile(const std::string& path) {
  absl::StatusOr<FileDigest> digest;
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    digest = DigestOnce(path);
    if (!absl::IsAborted(digest.status())) break;
  }
  return digest;
}

class Verifier {
 public:
  Verifier(Client& client, const Tree& tree, std::string_view key_base,
           const VerifyOptions& options, Progress& progress)
      : client_(client),
        tree_(tree),
        key_base_(key_base),
        options_(options),
        progress_(progress) {}

  VerifyReport Run() {
    std::vector<std::thread> threads;
    const int count = std::max(options_.threads, 1);
    {
      absl::MutexLock lock(&mutex_);
      running_ = count;
    }
    for (int i = 0; i < count; ++i) threads.emplace_back([this] { Work(); });
    ShowUntilDone();
    for (std::thread& thread : threads) thread.join();
    if (!stop_) CountExtraKeys();
    PrintProblems();
    absl::MutexLock lock(&mutex_);
    return report_;
  }

 private:
  // One thread's part.
  void Work() {
    VerifyReport mine;
    Sha256 sha256;
    while (!stop_) {
      const size_t index = next_file_.fetch_add(1);
      if (index >= tree_.files.size()) break;
      VerifyFile(tree_.files[index], sha256, &mine);
    }
    absl::MutexLock lock(&mutex_);
    report_.Add(mine);
    --running_;
  }

  void VerifyFile(const TreeFile& file, Sha256& sha256, VerifyReport* mine) {
    const std::string path = tree_.PathOf(file);
    const absl::Time start = absl::Now();
    const absl::StatusOr<Value> value = client_.Get(key_base_ + file.name);
    const absl::Duration latency = absl::Now() - start;
    if (absl::IsNotFound(value.status())) return AddMissing(path, mine);
    if (!value.ok()) {
      End(absl::Status(
          value.status().code(),
          absl::StrCat(Printable(path), ": ", value.status().message())));
      return;
    }
    mine->get_latencies.Add(latency);
    mine->time_in_gets += latency;
    mine->bytes += value->bytes.size();
    // The other half when it is compared, so that a large file moves the
    // display.
    progress_.Add(0, value->bytes.size() / 2);

    const absl::StatusOr<FileDigest> expected = DigestOfFile(path);
    if (!expected.ok()) {
      ++mine->unreadable_files;
      AddProblem(Printable(std::string(expected.status().message())));
      return;
    }
    sha256.Update(value->bytes);
    const FileDigest actual = {sha256.Finish(), value->bytes.size()};
    if (actual.bytes == expected->bytes && actual.digest == expected->digest) {
      ++mine->same_files;
    } else {
      ++mine->different_files;
      AddProblem(absl::StrCat(
          Printable(path), ": differs: the file has ", expected->bytes,
          " bytes, SHA-256 ", ToHex(expected->digest), "; the value has ",
          actual.bytes, " bytes, SHA-256 ", ToHex(actual.digest)));
    }
    progress_.Add(1, value->bytes.size() - value->bytes.size() / 2);
  }

  // A file that this process may not read was not loaded either.
  void AddMissing(const std::string& path, VerifyReport* mine) {
    const absl::Status open =
        SourceFile::Open(path, /*follow_links=*/false).status();
    if (open.ok()) {
      ++mine->missing_files;
      AddProblem(absl::StrCat(Printable(path), ": missing in the store"));
    } else {
      ++mine->unreadable_files;
      AddProblem(Printable(std::string(open.message())));
    }
  }

  void CountExtraKeys() {
    std::string token;
    do {
      absl::StatusOr<ListResponse> page = client_.List(key_base_, 0, token);
      if (!page.ok()) return End(page.status());
      for (const ListResponse::Entry& entry : page->entries()) {
        const std::string_view name =
            std::string_view(entry.key()).substr(key_base_.size());
        if (HasFile(name)) continue;
        AddProblem(absl::StrCat(Printable(entry.key()),
                                ": in the store, but no file has this name"));
        absl::MutexLock lock(&mutex_);
        ++report_.extra_keys;
      }
      token = std::move(*page->mutable_next_page_token());
    } while (!token.empty());
  }

  bool HasFile(std::string_view name) const {
    const auto it = std::lower_bound(
        tree_.files.begin(), tree_.files.end(), name,
        [](const TreeFile& file, std::string_view n) { return file.name < n; });
    return it != tree_.files.end() && it->name == name;
  }

  void ShowUntilDone() {
    bool over = false;
    while (!over) {
      {
        const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return running_ == 0;
        };
        absl::MutexLock lock(&mutex_);
        over = mutex_.AwaitWithTimeout(absl::Condition(&done),
                                       progress_.draw_interval());
      }
      PrintProblems();
      progress_.Draw();
    }
  }

  void PrintProblems() {
    std::vector<std::string> problems;
    {
      absl::MutexLock lock(&mutex_);
      problems.swap(problems_);
    }
    for (const std::string& problem : problems) progress_.Print(problem);
  }

  void AddProblem(std::string text) {
    absl::MutexLock lock(&mutex_);
    problems_.push_back(std::move(text));
  }

  void End(absl::Status status) {
    stop_ = true;
    absl::MutexLock lock(&mutex_);
    if (report_.fatal.ok()) report_.fatal = std::move(status);
  }

  Client& client_;
  const Tree& tree_;
  const std::string key_base_;
  const VerifyOptions options_;
  Progress& progress_;

  std::atomic<size_t> next_file_{0};
  std::atomic<bool> stop_{false};
  absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);  // to be printed
  VerifyReport report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void VerifyReport::Add(const VerifyReport& other) {
  same_files += other.same_files;
  different_files += other.different_files;
  missing_files += other.missing_files;
  unreadable_files += other.unreadable_files;
  extra_keys += other.extra_keys;
  bytes += other.bytes;
  get_latencies.Merge(other.get_latencies);
  time_in_gets += other.time_in_gets;
  fatal.Update(other.fatal);
}

VerifyReport VerifyTree(Client& client, const Tree& tree,
                        std::string_view key_base, const VerifyOptions& options,
                        Progress& progress) {
  return Verifier(client, tree, key_base, options, progress).Run();
}

}  // namespace kv
