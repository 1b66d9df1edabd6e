#include "rpc/routing/json_object.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/json_util.h"

namespace rpc::routing {
namespace {

using google::protobuf::Value;

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

// protobuf's: seconds with up to nine decimals, and an s.
bool ReadDuration(std::string_view text, absl::Duration* duration) {
  if (text.empty() || text.back() != 's') return false;
  text.remove_suffix(1);
  std::string_view decimals;
  const size_t point = text.find('.');
  if (point != std::string_view::npos) {
    decimals = text.substr(point + 1);
    text = text.substr(0, point);
    if (!IsDigits(decimals) || decimals.size() > 9) return false;
  }
  int64_t seconds;
  int64_t nanoseconds = 0;
  if (!IsDigits(text) || !absl::SimpleAtoi(std::string(text), &seconds)) {
    return false;
  }
  std::string nine(decimals);
  nine.resize(9, '0');
  if (!absl::SimpleAtoi(nine, &nanoseconds)) return false;
  *duration = absl::Seconds(seconds) + absl::Nanoseconds(nanoseconds);
  return true;
}

}  // namespace

void JsonErrors::Add(std::string_view place, std::string_view what) {
  errors_.push_back(place.empty() ? std::string(what)
                                  : absl::StrCat("field:", std::string(place),
                                                 " error:", std::string(what)));
}

absl::Status JsonErrors::ToStatus(std::string_view whole) const {
  return absl::InvalidArgumentError(
      absl::StrCat("errors validating ", std::string(whole), ": [",
                   absl::StrJoin(errors_, "; "), "]"));
}

std::optional<JsonObject> JsonObject::Parse(const std::string& text,
                                            JsonErrors* errors) {
  google::protobuf::Struct object;
  const auto status =
      google::protobuf::util::JsonStringToMessage(text, &object);
  if (status.ok()) return JsonObject(std::move(object), "", errors);
  errors->Add("", absl::StrCat("not a JSON object: ", status.ToString()));
  return std::nullopt;
}

std::string JsonObject::PlaceOf(std::string_view field) const {
  if (place_.empty()) return std::string(field);
  if (field.empty()) return place_;
  return absl::StrCat(place_, ".", std::string(field));
}

bool JsonObject::Has(const std::string& field) const {
  return object_.fields().contains(field);
}

std::vector<std::string> JsonObject::Fields() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.fields()) names.push_back(name);
  return names;
}

void JsonObject::Require(const std::string& field) const {
  if (!Has(field)) Complain(field, "field not present");
}

const Value* JsonObject::Find(const std::string& field) const {
  const auto found = object_.fields().find(field);
  return found == object_.fields().end() ? nullptr : &found->second;
}

const Value* JsonObject::Find(const std::string& field, Value::KindCase kind,
                              const char* kind_name) const {
  const Value* const value = Find(field);
  if (value == nullptr || value->kind_case() == kind) return value;
  Complain(field, absl::StrCat("is not ", kind_name));
  return nullptr;
}

std::optional<double> JsonObject::Number(const std::string& field) const {
  const Value* const value = Find(field);
  if (value == nullptr) return std::nullopt;
  double number = value->number_value();
  const bool is_number = value->kind_case() == Value::kNumberValue ||
                         (value->kind_case() == Value::kStringValue &&
                          absl::SimpleAtod(value->string_value(), &number));
  if (is_number && std::isfinite(number)) return number;
  Complain(field, "is not a number");
  return std::nullopt;
}

std::optional<uint64_t> JsonObject::Whole(const std::string& field,
                                          uint64_t max) const {
  const std::optional<double> number = Number(field);
  if (!number.has_value()) return std::nullopt;
  if (*number >= 0 && *number <= static_cast<double>(max) &&
      *number == std::floor(*number)) {
    return static_cast<uint64_t>(*number);
  }
  Complain(field, absl::StrCat("is not a whole number from 0 to ", max));
  return std::nullopt;
}

std::optional<std::string> JsonObject::Text(const std::string& field) const {
  const Value* const value = Find(field, Value::kStringValue, "a string");
  if (value == nullptr) return std::nullopt;
  return value->string_value();
}

std::optional<bool> JsonObject::Boolean(const std::string& field) const {
  const Value* const value = Find(field, Value::kBoolValue, "a boolean");
  if (value == nullptr) return std::nullopt;
  return value->bool_value();
}

std::optional<absl::Duration> JsonObject::Duration(
    const std::string& field) const {
  const std::optional<std::string> text = Text(field);
  if (!text.has_value()) return std::nullopt;
  absl::Duration duration;
  if (ReadDuration(*text, &duration)) return duration;
  Complain(field, "is not a duration, such as \"1.5s\"");
  return std::nullopt;
}

std::optional<JsonObject> JsonObject::Object(const std::string& field) const {
  const Value* const value = Find(field, Value::kStructValue, "an object");
  if (value == nullptr) return std::nullopt;
  return JsonObject(value->struct_value(), PlaceOf(field), errors_);
}

std::vector<JsonObject> JsonObject::Objects(const std::string& field) const {
  std::vector<JsonObject> objects;
  const Value* const list = Find(field, Value::kListValue, "an array");
  if (list == nullptr) return objects;
  for (int i = 0; i < list->list_value().values_size(); ++i) {
    const Value& value = list->list_value().values(i);
    std::string place = absl::StrCat(PlaceOf(field), "[", i, "]");
    if (value.kind_case() == Value::kStructValue) {
      objects.push_back(
          JsonObject(value.struct_value(), std::move(place), errors_));
    } else {
      errors_->Add(place, "is not an object");
    }
  }
  return objects;
}

std::vector<std::string> JsonObject::Texts(const std::string& field) const {
  std::vector<std::string> texts;
  const Value* const list = Find(field, Value::kListValue, "an array");
  if (list == nullptr) return texts;
  for (int i = 0; i < list->list_value().values_size(); ++i) {
    const Value& value = list->list_value().values(i);
    if (value.kind_case() == Value::kStringValue) {
      texts.push_back(value.string_value());
    } else {
      errors_->Add(absl::StrCat(PlaceOf(field), "[", i, "]"),
                   "is not a string");
    }
  }
  return texts;
}

}  // namespace rpc::routing
