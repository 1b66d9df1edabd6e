#include "examples/kv/load.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "examples/kv/format.h"
#include "examples/kv/source_file.h"

namespace kv {
namespace {

// A file that is being written is tried so often; then it is a problem.
constexpr int kReadAttempts = 3;

// The display is looked after between reads of so many bytes.
constexpr size_t kReadBytes = size_t{64} << 20;

// Whether the error is of the server and not of one file.
bool EndsTheLoad(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsUnimplemented(status) ||
         absl::IsCancelled(status);
}

class Loader {
 public:
  Loader(Client& client, const Tree& tree, std::string_view key_base,
         const LoadOptions& options, Progress& progress)
      : client_(client),
        tree_(tree),
        key_base_(key_base),
        options_(options),
        progress_(progress) {}

  LoadReport Run() {
    for (const TreeFile& file : tree_.files) {
      if (!WaitForRoom(file.bytes)) break;
      absl::StatusOr<rpc::BufferChain> value = ReadWhole(file);
      if (value.ok()) {
        StartPut(file, *std::move(value));
      } else if (absl::IsResourceExhausted(value.status())) {
        End(value.status());
      } else {
        AddProblem(std::string(value.status().message()));
      }
    }
    WaitUntil([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return calls_in_flight_ == 0;
    });
    absl::MutexLock lock(&mutex_);
    return report_;
  }

 private:
  // Waits until `done` holds, and keeps the display alive meanwhile.
  template <typename Condition>
  void WaitUntil(Condition done) {
    while (true) {
      std::vector<std::string> problems;
      bool over;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.AwaitWithTimeout(absl::Condition(&done),
                                progress_.draw_interval());
        over = done();
        problems.swap(problems_);
      }
      for (const std::string& problem : problems) progress_.Print(problem);
      progress_.Draw();
      if (over) return;
    }
  }

  // Waits until a file of `bytes` may be read; false: the load is to end.
  bool WaitForRoom(uint64_t bytes) {
    bool go_on = false;
    WaitUntil([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      go_on = report_.fatal.ok();
      const bool room =
          calls_in_flight_ < options_.max_calls_in_flight &&
          (calls_in_flight_ == 0 ||
           bytes_in_flight_ + bytes <= options_.max_bytes_in_flight);
      return !go_on || room;
    });
    return go_on;
  }

  absl::StatusOr<rpc::BufferChain> ReadWhole(const TreeFile& file) {
    absl::StatusOr<rpc::BufferChain> value;
    for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
      value = ReadOnce(tree_.PathOf(file));
      if (!absl::IsAborted(value.status())) break;
    }
    return value;
  }

  absl::StatusOr<rpc::BufferChain> ReadOnce(const std::string& path) {
    const absl::StatusOr<SourceFile> file =
        SourceFile::Open(path, /*follow_links=*/false);
    if (!file.ok()) return file.status();
    absl::StatusOr<rpc::BufferChain> value = Allocate(file->size());
    if (!value.ok()) return value.status();
    uint64_t offset = 0;
    for (rpc::Buffer buffer : value->buffers()) {
      for (auto rest = absl::MakeSpan(buffer.mutable_data(), buffer.size());
           !rest.empty();) {
        const auto piece = rest.first(std::min(rest.size(), kReadBytes));
        const absl::Status status = file->Read(offset, piece);
        if (!status.ok()) return status;
        offset += piece.size();
        rest.remove_prefix(piece.size());
        progress_.Draw();
      }
    }
    if (absl::Status status = file->CheckUnchanged(); !status.ok()) {
      return status;
    }
    return value;
  }

  // As AllocateValue; waits for calls in flight where their memory is missing.
  absl::StatusOr<rpc::BufferChain> Allocate(uint64_t bytes) {
    while (true) {
      absl::StatusOr<rpc::BufferChain> value = client_.AllocateValue(bytes);
      if (!absl::IsResourceExhausted(value.status())) return value;
      int before;
      {
        absl::MutexLock lock(&mutex_);
        before = calls_in_flight_;
      }
      if (before == 0) return value;
      WaitUntil([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return calls_in_flight_ < before;
      });
    }
  }

  void StartPut(const TreeFile& file, rpc::BufferChain value) {
    const uint64_t bytes = value.size();
    {
      absl::MutexLock lock(&mutex_);
      ++calls_in_flight_;
      bytes_in_flight_ += bytes;
    }
    // The other half when it is stored: a file that takes long moves the
    // display at least once.
    progress_.Add(0, bytes / 2);
    client_.PutAsync(key_base_ + file.name, std::move(value),
                     [this, &file, bytes](absl::Status status) {
                       OnPutDone(file, bytes, std::move(status));
                     });
  }

  void OnPutDone(const TreeFile& file, uint64_t bytes, absl::Status status) {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      ++report_.files;
      report_.bytes += bytes;
      progress_.Add(1, bytes - bytes / 2);
    } else if (EndsTheLoad(status)) {
      if (report_.fatal.ok()) {
        report_.fatal = absl::Status(
            status.code(), absl::StrCat(Printable(tree_.PathOf(file)), ": ",
                                        status.message()));
      }
    } else {
      ++report_.failed_files;
      problems_.push_back(
          absl::StrCat(Printable(tree_.PathOf(file)), ": ", status.ToString()));
    }
    // The last: the loader may be gone once nothing is in flight.
    bytes_in_flight_ -= bytes;
    --calls_in_flight_;
  }

  void AddProblem(std::string text) {
    absl::MutexLock lock(&mutex_);
    ++report_.failed_files;
    problems_.push_back(Printable(text));
  }

  void End(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (report_.fatal.ok()) report_.fatal = status;
  }

  Client& client_;
  const Tree& tree_;
  const std::string key_base_;
  const LoadOptions options_;
  Progress& progress_;

  absl::Mutex mutex_;
  int calls_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);  // to be printed
  LoadReport report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void LoadReport::Add(const LoadReport& other) {
  files += other.files;
  bytes += other.bytes;
  failed_files += other.failed_files;
  fatal.Update(other.fatal);
}

LoadReport LoadTree(Client& client, const Tree& tree, std::string_view key_base,
                    const LoadOptions& options, Progress& progress) {
  return Loader(client, tree, key_base, options, progress).Run();
}

}  // namespace kv
