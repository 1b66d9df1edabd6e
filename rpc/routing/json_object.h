// Typed reading of a JSON object, which notes everything that is wrong with it
// and where.
//
//   JsonErrors errors;
//   std::optional<JsonObject> config = JsonObject::Parse(text, "", &errors);
//   const std::optional<absl::Duration> timeout = config->Duration("timeout");
//   if (!errors.empty()) return errors.ToStatus("service config");
//
// A field that is not there is no error; one of another type reads as not
// there, and is noted. Numbers may be written as strings, as in gRPC's config.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_ROUTING_JSON_OBJECT_H_
#define VERBENA_RPC_ROUTING_JSON_OBJECT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rpc/routing/json_value.h"

namespace rpc::routing {

class JsonErrors {
 public:
  // `place`: "methodConfig[0].timeout".
  void Add(std::string_view place, std::string_view what);
  bool empty() const { return errors_.empty(); }
  // INVALID_ARGUMENT, with all of them.
  absl::Status ToStatus(std::string_view whole) const;

 private:
  std::vector<std::string> errors_;
};

class JsonObject {
 public:
  // None where it is not the text of an object, which is noted.
  static std::optional<JsonObject> Parse(const std::string& text,
                                         JsonErrors* errors);

  // The place of a field; of this object, where it is empty.
  std::string PlaceOf(std::string_view field) const;
  bool Has(const std::string& field) const;
  std::vector<std::string> Fields() const;
  // Notes what is wrong with a field.
  void Complain(std::string_view field, std::string_view what) const {
    errors_->Add(PlaceOf(field), what);
  }
  // Notes where it is not there.
  void Require(const std::string& field) const;

  std::optional<double> Number(const std::string& field) const;
  // Of 0 to `max`.
  std::optional<uint64_t> Whole(const std::string& field, uint64_t max) const;
  std::optional<std::string> Text(const std::string& field) const;
  std::optional<bool> Boolean(const std::string& field) const;
  // "1.5s", as protobuf writes durations.
  std::optional<absl::Duration> Duration(const std::string& field) const;
  std::optional<JsonObject> Object(const std::string& field) const;
  // Empty where it is not there.
  std::vector<JsonObject> Objects(const std::string& field) const;
  std::vector<std::string> Texts(const std::string& field) const;

 private:
  JsonObject(JsonValue::Object object, std::string place, JsonErrors* errors)
      : object_(std::move(object)), place_(std::move(place)), errors_(errors) {}

  // Null where it is not there, or of another kind, which is noted.
  template <typename Kind>
  const Kind* Find(const std::string& field, const char* kind_name) const;
  const JsonValue* Find(const std::string& field) const;

  JsonValue::Object object_;
  std::string place_;
  JsonErrors* errors_;
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_JSON_OBJECT_H_
