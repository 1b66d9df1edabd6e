#include "rpc/routing/json_value.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"

namespace rpc::routing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::Reflection;

// All by reflection: messages with maps are laid out otherwise in code that is
// compiled for ThreadSanitizer, which the library is not.
std::unique_ptr<Message> NewStruct() {
  const Descriptor* const type =
      DescriptorPool::generated_pool()->FindMessageTypeByName(
          "google.protobuf.Struct");
  return std::unique_ptr<Message>(
      MessageFactory::generated_factory()->GetPrototype(type)->New());
}

JsonValue FromValue(const Message& value);

JsonValue::Object FromStruct(const Message& object) {
  const Reflection& reflection = *object.GetReflection();
  const FieldDescriptor* const fields =
      object.GetDescriptor()->FindFieldByName("fields");
  JsonValue::Object result;
  for (int i = 0; i < reflection.FieldSize(object, fields); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(object, fields, i);
    const Descriptor& type = *entry.GetDescriptor();
    const Reflection& of_entry = *entry.GetReflection();
    result[of_entry.GetString(entry, type.FindFieldByName("key"))] =
        FromValue(of_entry.GetMessage(entry, type.FindFieldByName("value")));
  }
  return result;
}

JsonValue::Array FromList(const Message& list) {
  const Reflection& reflection = *list.GetReflection();
  const FieldDescriptor* const values =
      list.GetDescriptor()->FindFieldByName("values");
  JsonValue::Array result;
  for (int i = 0; i < reflection.FieldSize(list, values); ++i) {
    result.push_back(FromValue(reflection.GetRepeatedMessage(list, values, i)));
  }
  return result;
}

JsonValue FromValue(const Message& value) {
  const Reflection& reflection = *value.GetReflection();
  const FieldDescriptor* const kind = reflection.GetOneofFieldDescriptor(
      value, value.GetDescriptor()->FindOneofByName("kind"));
  if (kind == nullptr || kind->name() == "null_value") return {};
  if (kind->name() == "bool_value") return {reflection.GetBool(value, kind)};
  if (kind->name() == "number_value") {
    return {reflection.GetDouble(value, kind)};
  }
  if (kind->name() == "string_value") {
    return {reflection.GetString(value, kind)};
  }
  const Message& inner = reflection.GetMessage(value, kind);
  if (kind->name() == "list_value") return {FromList(inner)};
  return {FromStruct(inner)};
}

}  // namespace

absl::StatusOr<JsonValue::Object> ParseJsonObject(const std::string& text) {
  const std::unique_ptr<Message> object = NewStruct();
  const auto status =
      google::protobuf::util::JsonStringToMessage(text, object.get());
  if (status.ok()) return FromStruct(*object);
  return absl::InvalidArgumentError(
      absl::StrCat("JSON parse error: ", status.ToString()));
}

}  // namespace rpc::routing
