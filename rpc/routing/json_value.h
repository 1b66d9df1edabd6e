// JSON as a tree, read by protobuf's parser (into google.protobuf.Struct).
//
// Thread rule: a value type.
#ifndef VERBENA_RPC_ROUTING_JSON_VALUE_H_
#define VERBENA_RPC_ROUTING_JSON_VALUE_H_

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace rpc::routing {

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::map<std::string, JsonValue>;

  // Nothing: null.
  std::variant<std::monostate, bool, double, std::string, Array, Object> value;
};

// INVALID_ARGUMENT where `text` is not that of an object.
absl::StatusOr<JsonValue::Object> ParseJsonObject(const std::string& text);

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_JSON_VALUE_H_
