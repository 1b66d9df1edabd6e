#include "rpc/compiler/parameters.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/compiler/code_generator.h"
#include "rpc/compiler/names.h"

namespace rpc::compiler {
namespace {

bool IsIdentifier(const std::string& text) {
  if (text.empty() || absl::ascii_isdigit(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_';
  });
}

absl::Status SetServicesNamespace(const std::string& value,
                                  Parameters& parameters) {
  if (!IsIdentifier(value) || IsReservedByCpp(value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "services_namespace: \"", value, "\" cannot name a C++ namespace"));
  }
  parameters.services_namespace = value;
  return absl::OkStatus();
}

absl::Status SetGenerateMockCode(const std::string& value,
                                 Parameters& parameters) {
  if (value != "true" && value != "false") {
    return absl::InvalidArgumentError(absl::StrCat(
        "generate_mock_code: \"", value, "\" is neither true nor false"));
  }
  parameters.generate_mock_code = value == "true";
  return absl::OkStatus();
}

absl::Status SetParameter(const std::string& name, const std::string& value,
                          Parameters& parameters) {
  if (name == "services_namespace") {
    return SetServicesNamespace(value, parameters);
  }
  if (name == "generate_mock_code") {
    return SetGenerateMockCode(value, parameters);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown parameter \"", name,
                   "\"; there are services_namespace=NAME and "
                   "generate_mock_code=true"));
}

}  // namespace

absl::StatusOr<Parameters> ParseParameters(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  google::protobuf::compiler::ParseGeneratorParameter(text, &pairs);
  Parameters parameters;
  for (const auto& [name, value] : pairs) {
    absl::Status status = SetParameter(name, value, parameters);
    if (!status.ok()) return status;
  }
  return parameters;
}

}  // namespace rpc::compiler
