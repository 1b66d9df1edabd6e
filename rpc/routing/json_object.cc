#include "rpc/routing/json_object.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rpc::routing {
namespace {

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
  absl::StatusOr<JsonValue::Object> object = ParseJsonObject(text);
  if (object.ok()) return JsonObject(*std::move(object), "", errors);
  errors->Add("", std::string(object.status().message()));
  return std::nullopt;
}

std::string JsonObject::PlaceOf(std::string_view field) const {
  if (place_.empty()) return std::string(field);
  if (field.empty()) return place_;
  return absl::StrCat(place_, ".", std::string(field));
}

bool JsonObject::Has(const std::string& field) const {
  return Find(field) != nullptr;
}

std::vector<std::string> JsonObject::Fields() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_) names.push_back(name);
  return names;
}

void JsonObject::Require(const std::string& field) const {
  if (!Has(field)) Complain(field, "field not present");
}

const JsonValue* JsonObject::Find(const std::string& field) const {
  const auto found = object_.find(field);
  return found == object_.end() ? nullptr : &found->second;
}

template <typename Kind>
const Kind* JsonObject::Find(const std::string& field,
                             const char* kind_name) const {
  const JsonValue* const value = Find(field);
  if (value == nullptr) return nullptr;
  const Kind* const result = std::get_if<Kind>(&value->value);
  if (result == nullptr) Complain(field, absl::StrCat("is not ", kind_name));
  return result;
}

std::optional<double> JsonObject::Number(const std::string& field) const {
  const JsonValue* const value = Find(field);
  if (value == nullptr) return std::nullopt;
  double number = 0;
  const double* const plain = std::get_if<double>(&value->value);
  const std::string* const text = std::get_if<std::string>(&value->value);
  if (plain != nullptr) number = *plain;
  const bool is_number =
      plain != nullptr || (text != nullptr && absl::SimpleAtod(*text, &number));
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
  const auto* const text = Find<std::string>(field, "a string");
  if (text == nullptr) return std::nullopt;
  return *text;
}

std::optional<bool> JsonObject::Boolean(const std::string& field) const {
  const bool* const value = Find<bool>(field, "a boolean");
  if (value == nullptr) return std::nullopt;
  return *value;
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
  const auto* const object = Find<JsonValue::Object>(field, "an object");
  if (object == nullptr) return std::nullopt;
  return JsonObject(*object, PlaceOf(field), errors_);
}

std::vector<JsonObject> JsonObject::Objects(const std::string& field) const {
  std::vector<JsonObject> objects;
  const auto* const list = Find<JsonValue::Array>(field, "an array");
  if (list == nullptr) return objects;
  for (size_t i = 0; i < list->size(); ++i) {
    std::string place = absl::StrCat(PlaceOf(field), "[", i, "]");
    const auto* const object =
        std::get_if<JsonValue::Object>(&(*list)[i].value);
    if (object != nullptr) {
      objects.push_back(JsonObject(*object, std::move(place), errors_));
    } else {
      errors_->Add(place, "is not an object");
    }
  }
  return objects;
}

std::vector<std::string> JsonObject::Texts(const std::string& field) const {
  std::vector<std::string> texts;
  const auto* const list = Find<JsonValue::Array>(field, "an array");
  if (list == nullptr) return texts;
  for (size_t i = 0; i < list->size(); ++i) {
    const auto* const text = std::get_if<std::string>(&(*list)[i].value);
    if (text != nullptr) {
      texts.push_back(*text);
    } else {
      errors_->Add(absl::StrCat(PlaceOf(field), "[", i, "]"),
                   "is not a string");
    }
  }
  return texts;
}

}  // namespace rpc::routing
