// A method's name as channels give it to their transports, which carry it as it
// is: the path, and behind it what the channel says of itself with each of its
// calls (the origin: authority, user agent). A connection carries a method's
// name once, so calls pay nothing for it.
//
//   name = "/package.Service/Method", or that, a zero byte, and a header block
//
// Thread rule: functions without state.
#ifndef VERBENA_RPC_INTERNAL_METHOD_NAME_H_
#define VERBENA_RPC_INTERNAL_METHOD_NAME_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "rpc/internal/received_metadata.h"

namespace rpc::internal {

// Longer names lose their origin; transports take no longer ones.
inline constexpr size_t kMaxMethodNameBytes = 1024;

// The header block of a channel's origin. A user agent that is no legal value
// of metadata is left out, and logged.
std::string EncodeOrigin(std::string_view authority,
                         std::string_view user_agent);

std::string MethodName(std::string_view path, std::string_view origin);

// Of a name. Views of `name`.
std::string_view PathOfMethodName(std::string_view name);
std::string_view OriginOfMethodName(std::string_view name);  // or empty

// Null where it is not to be used.
std::shared_ptr<const ReceivedMetadata> DecodeOrigin(std::string_view origin);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_METHOD_NAME_H_
