#include "examples/kv/value_of_file.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "examples/kv/source_file.h"

namespace kv {

absl::StatusOr<rpc::BufferChain> ValueOfFile(Client& client,
                                             const std::string& path) {
  const absl::StatusOr<SourceFile> file =
      SourceFile::Open(path, /*follow_links=*/true);
  if (!file.ok()) return file.status();
  absl::StatusOr<rpc::BufferChain> value = client.AllocateValue(file->size());
  if (!value.ok()) return value.status();
  uint64_t offset = 0;
  for (rpc::Buffer buffer : value->buffers()) {
    const absl::Status status = file->Read(
        offset, absl::MakeSpan(buffer.mutable_data(), buffer.size()));
    if (!status.ok()) return status;
    offset += buffer.size();
  }
  if (absl::Status status = file->CheckUnchanged(); !status.ok()) return status;
  return value;
}

}  // namespace kv
