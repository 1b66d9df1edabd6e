#include "tools/rpc_cli/json_codec.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver_util.h"

namespace rpc_cli {
namespace {

using google::protobuf::Message;
namespace util = google::protobuf::util;

constexpr char kUrlPrefix[] = "type.googleapis.com";

std::string UrlOf(const Message& message) {
  return absl::StrCat(kUrlPrefix, "/", message.GetDescriptor()->full_name());
}

std::string TextOf(const util::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

}  // namespace

JsonCodec::JsonCodec(const google::protobuf::DescriptorPool* pool,
                     const JsonOptions& options)
    : types_(util::NewTypeResolverForDescriptorPool(kUrlPrefix, pool)),
      options_(options) {}

absl::Status JsonCodec::Parse(const std::string& json, Message* message) const {
  std::string bytes;
  const util::Status status = util::JsonToBinaryString(
      types_.get(), UrlOf(*message), json, &bytes, util::JsonParseOptions());
  if (!status.ok()) return absl::InvalidArgumentError(TextOf(status));
  if (!message->ParsePartialFromString(bytes)) {
    return absl::InvalidArgumentError("it cannot be encoded");
  }
  if (!message->IsInitialized()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "required fields are missing: ", message->InitializationErrorString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> JsonCodec::Print(const Message& message) const {
  util::JsonPrintOptions options;
  options.add_whitespace = !options_.compact;
  options.always_print_primitive_fields = options_.emit_defaults;
  std::string json;
  const util::Status status =
      util::BinaryToJsonString(types_.get(), UrlOf(message),
                               message.SerializeAsString(), &json, options);
  if (!status.ok()) return absl::InternalError(TextOf(status));
  absl::StripTrailingAsciiWhitespace(&json);
  return json;
}

}  // namespace rpc_cli
