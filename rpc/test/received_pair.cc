#include "rpc/test/received_pair.h"

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "rpc/internal/header_block.h"
#include "rpc/logging.h"
#include "rpc/status.h"

namespace rpc::testing {

void AddReceivedPair(internal::ReceivedMetadata::From from,
                     const std::string& key, const std::string& value,
                     std::unique_ptr<internal::ReceivedMetadata>& received) {
  if (received == nullptr) {
    received = std::make_unique<internal::ReceivedMetadata>();
  }
  std::string block;
  internal::HeaderBlockWriter(&block).Add(
      internal::HeaderKind::kInitialMetadata, key, value);
  const Status status = received->Add(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(block.data()),
                          block.size()),
      from, /*first=*/true, SIZE_MAX);
  if (!status.ok()) Log(LogLevel::kError, status.error_message());
}

}  // namespace rpc::testing
