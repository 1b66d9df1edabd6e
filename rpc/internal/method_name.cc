#include "rpc/internal/method_name.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rpc/internal/header_block.h"
#include "rpc/logging.h"
#include "rpc/metadata.h"
#include "rpc/status.h"

namespace rpc::internal {
namespace {

constexpr char kEndOfPath = '\0';
constexpr char kUserAgent[] = "user-agent";

}  // namespace

std::string EncodeOrigin(std::string_view authority,
                         std::string_view user_agent) {
  std::string origin;
  HeaderBlockWriter writer(&origin);
  if (!authority.empty()) writer.Add(HeaderKind::kAuthority, "", authority);
  if (user_agent.empty()) return origin;
  const Status status = CheckMetadataEntry(kUserAgent, user_agent);
  if (status.ok()) {
    writer.Add(HeaderKind::kInitialMetadata, kUserAgent, user_agent);
  } else {
    Log(LogLevel::kWarning,
        absl::StrCat("no user agent is sent: ", status.error_message()));
  }
  return origin;
}

std::string MethodName(std::string_view path, std::string_view origin) {
  std::string name(path);
  // Without a path there is no method, whatever the channel says of itself.
  if (!path.empty() && !origin.empty() &&
      path.size() + 1 + origin.size() <= kMaxMethodNameBytes) {
    name.push_back(kEndOfPath);
    name.append(origin);
  }
  return name;
}

std::string_view PathOfMethodName(std::string_view name) {
  return name.substr(0, name.find(kEndOfPath));
}

std::string_view OriginOfMethodName(std::string_view name) {
  const size_t end = name.find(kEndOfPath);
  return end == std::string_view::npos ? std::string_view()
                                       : name.substr(end + 1);
}

std::shared_ptr<const ReceivedMetadata> DecodeOrigin(std::string_view origin) {
  if (origin.empty()) return nullptr;
  auto decoded = std::make_shared<ReceivedMetadata>();
  const Status status = decoded->Add(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(origin.data()),
                          origin.size()),
      ReceivedMetadata::From::kClient, /*first=*/true, kMaxMethodNameBytes);
  return status.ok() ? decoded : nullptr;
}

}  // namespace rpc::internal
