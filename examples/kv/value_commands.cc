#include "examples/kv/value_commands.h"

#include <gflags/gflags.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "examples/kv/format.h"
#include "examples/kv/output_file.h"
#include "examples/kv/value_of_file.h"

DEFINE_string(output, "",
              "get: the file to write the value to, whole or not at all; "
              "default: stdout");
DEFINE_string(file, "", "put: the file that holds the value");
DEFINE_int64(if_version, -1,
             "put: only if the key has this version (see list --long); 0: only "
             "if there is no such key; -1: in any case");

namespace kv {
namespace {

// Input of unknown length comes in pieces that grow with what there is.
constexpr uint64_t kFirstPieceBytes = uint64_t{64} << 10;
constexpr uint64_t kLargestPieceBytes = uint64_t{64} << 20;

// Reads until `out` is full or the input ends; returns the bytes read.
absl::StatusOr<size_t> ReadStdin(absl::Span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        ::read(STDIN_FILENO, out.data() + done, out.size() - done);
    if (count < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, "stdin");
    }
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

absl::StatusOr<rpc::BufferChain> ValueOfStdin(Client& client) {
  rpc::BufferChain value;
  while (true) {
    absl::StatusOr<rpc::BufferChain> piece = client.AllocateValue(
        std::clamp(value.size(), kFirstPieceBytes, kLargestPieceBytes));
    if (!piece.ok()) return piece.status();
    rpc::Buffer buffer = piece->buffers().front();
    const absl::StatusOr<size_t> bytes =
        ReadStdin(absl::MakeSpan(buffer.mutable_data(), buffer.size()));
    if (!bytes.ok()) return bytes.status();
    const bool end = *bytes < buffer.size();
    buffer.remove_suffix(buffer.size() - *bytes);
    value.Append(std::move(buffer));
    if (end) return value;
  }
}

absl::StatusOr<rpc::BufferChain> ValueOfArguments(Client& client,
                                                  const Arguments& arguments) {
  if (!FLAGS_file.empty()) return ValueOfFile(client, FLAGS_file);
  if (arguments.size() == 2) {
    return rpc::BufferChain(rpc::Buffer::CopyOf(arguments[1]));
  }
  return ValueOfStdin(client);
}

ExitCode PutIfVersion(Client& client, const std::string& key,
                      rpc::BufferChain value) {
  const absl::StatusOr<CompareAndSwapResponse> response = client.CompareAndSwap(
      key, static_cast<uint64_t>(FLAGS_if_version), std::move(value));
  if (!response.ok()) return CallFailed(response.status());
  if (!response->swapped()) {
    PrintError(response->version() == 0
                   ? absl::StrCat(Printable(key), ": there is no such key")
                   : absl::StrCat(Printable(key), ": has version ",
                                  response->version(), " and not ",
                                  FLAGS_if_version));
    return kExitNegative;
  }
  absl::PrintF("version %d\n", response->version());
  return kExitOk;
}

ExitCode RunGet(Client& client, const Arguments& arguments) {
  const std::string& key = arguments[0];
  const absl::StatusOr<Value> value = client.Get(key);
  if (absl::IsNotFound(value.status())) {
    PrintError(absl::StrCat(Printable(key), ": no such key in the store at ",
                            client.address()));
    return kExitNegative;
  }
  if (!value.ok()) return CallFailed(value.status());
  const absl::Status written =
      FLAGS_output.empty() ? WriteTo(STDOUT_FILENO, "stdout", value->bytes)
                           : WriteFile(FLAGS_output, value->bytes);
  return written.ok() ? kExitOk : FileFailed(written);
}

ExitCode RunPut(Client& client, const Arguments& arguments) {
  if (arguments.size() == 2 && !FLAGS_file.empty()) {
    PrintError("put: give a VALUE or --file, not both");
    return kExitUsage;
  }
  if (FLAGS_if_version < -1) {
    PrintError("put: --if_version is a version, 0 or -1");
    return kExitUsage;
  }
  absl::StatusOr<rpc::BufferChain> value = ValueOfArguments(client, arguments);
  if (!value.ok()) return FileFailed(value.status());
  if (FLAGS_if_version >= 0) {
    return PutIfVersion(client, arguments[0], *std::move(value));
  }
  const absl::StatusOr<PutResponse> response =
      client.Put(arguments[0], *std::move(value));
  if (!response.ok()) return CallFailed(response.status());
  absl::PrintF("version %d\n", response->version());
  return kExitOk;
}

ExitCode RunDelete(Client& client, const Arguments& arguments) {
  const absl::StatusOr<DeleteResponse> response = client.Delete(arguments[0]);
  if (!response.ok()) return CallFailed(response.status());
  if (response->deleted()) return kExitOk;
  PrintError(absl::StrCat(Printable(arguments[0]),
                          ": no such key in the store at ", client.address()));
  return kExitNegative;
}

}  // namespace

const Command kGetCommand = {
    .name = "get",
    .arguments = "KEY [--output FILE]",
    .summary = "writes a key's value to stdout or a file",
    .details = "Exits with 2 where there is no such key.",
    .min_arguments = 1,
    .max_arguments = 1,
    .run = RunGet,
};

const Command kPutCommand = {
    .name = "put",
    .arguments = "KEY [VALUE | --file FILE] [--if_version N]",
    .summary = "sets a key to VALUE, to a file's bytes, or to what stdin gives",
    .details =
        "Prints the key's new version. With --if_version, exits with 2 where "
        "the key\nhas another version.",
    .min_arguments = 1,
    .max_arguments = 2,
    .run = RunPut,
};

const Command kDeleteCommand = {
    .name = "delete",
    .arguments = "KEY",
    .summary = "deletes a key",
    .details = "Exits with 2 where there is no such key.",
    .min_arguments = 1,
    .max_arguments = 1,
    .run = RunDelete,
};

}  // namespace kv
