#include "tools/rpc_cli/lookup.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tools/rpc_cli/near_names.h"

namespace rpc_cli {
namespace {

using google::protobuf::DebugStringOptions;
using google::protobuf::DescriptorPool;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

// NOT_FOUND, or why that cannot be said.
absl::Status NothingCalled(const Schema& schema, const std::string& what,
                           const std::string& name,
                           const std::vector<std::string>& known) {
  absl::Status error = schema.LookupError();
  if (!error.ok()) return error;
  return absl::NotFoundError(absl::StrCat("there is no ", what, " '", name, "'",
                                          Suggestion(name, known)));
}

std::vector<std::string> MethodNames(const ServiceDescriptor& service) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(service.method_count()));
  for (int i = 0; i < service.method_count(); ++i) {
    names.push_back(service.method(i)->name());
  }
  return names;
}

// Services, their methods, and what these take and give; sorted.
absl::StatusOr<std::vector<std::string>> KnownSymbols(Schema& schema) {
  absl::StatusOr<std::vector<std::string>> names = schema.ServiceNames();
  if (!names.ok()) return names.status();
  std::vector<std::string> symbols = *names;
  for (const std::string& name : *names) {
    const ServiceDescriptor* service = schema.pool()->FindServiceByName(name);
    if (service == nullptr) continue;
    for (int i = 0; i < service->method_count(); ++i) {
      const MethodDescriptor& method = *service->method(i);
      symbols.push_back(method.full_name());
      symbols.push_back(method.input_type()->full_name());
      symbols.push_back(method.output_type()->full_name());
    }
  }
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  return symbols;
}

template <class Descriptor>
std::optional<std::string> Text(const char* what,
                                const Descriptor* descriptor) {
  if (descriptor == nullptr) return std::nullopt;
  DebugStringOptions options;
  options.include_comments = true;
  return absl::StrCat(descriptor->full_name(), " is ", what, ":\n",
                      descriptor->DebugStringWithOptions(options));
}

std::optional<std::string> TextOfSymbol(const DescriptorPool& pool,
                                        const std::string& name) {
  std::optional<std::string> text =
      Text("a service", pool.FindServiceByName(name));
  if (!text) text = Text("a message", pool.FindMessageTypeByName(name));
  if (!text) text = Text("an enumeration", pool.FindEnumTypeByName(name));
  if (!text) text = Text("a method", pool.FindMethodByName(name));
  if (!text) text = Text("a field", pool.FindFieldByName(name));
  if (!text) text = Text("an extension", pool.FindExtensionByName(name));
  if (!text) text = Text("a oneof", pool.FindOneofByName(name));
  if (!text) text = Text("a value", pool.FindEnumValueByName(name));
  return text;
}

}  // namespace

absl::StatusOr<const ServiceDescriptor*> FindService(Schema& schema,
                                                     const std::string& name) {
  const ServiceDescriptor* service = schema.pool()->FindServiceByName(name);
  if (service != nullptr) return service;
  const absl::StatusOr<std::vector<std::string>> names = schema.ServiceNames();
  if (!names.ok()) return names.status();
  return NothingCalled(schema, "service", name, *names);
}

absl::StatusOr<const MethodDescriptor*> FindMethod(Schema& schema,
                                                   const std::string& name) {
  const std::string words(absl::StripPrefix(name, "/"));
  size_t end = words.find('/');
  if (end == std::string::npos) end = words.rfind('.');
  if (end == std::string::npos || end == 0 || end + 1 == words.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' is no method: write package.Service/Method"));
  }
  const absl::StatusOr<const ServiceDescriptor*> service =
      FindService(schema, words.substr(0, end));
  if (!service.ok()) return service.status();
  const std::string method_name = words.substr(end + 1);
  const MethodDescriptor* method = (*service)->FindMethodByName(method_name);
  if (method != nullptr) return method;
  return NothingCalled(schema,
                       absl::StrCat("method of ", (*service)->full_name()),
                       method_name, MethodNames(**service));
}

absl::StatusOr<std::string> Describe(Schema& schema, const std::string& name) {
  // As in a path, and as protobuf writes full names.
  const std::string symbol = absl::StrReplaceAll(
      absl::StripPrefix(absl::StripPrefix(name, "/"), "."), {{"/", "."}});
  std::optional<std::string> text = TextOfSymbol(*schema.pool(), symbol);
  if (text) return *std::move(text);
  const absl::StatusOr<std::vector<std::string>> known = KnownSymbols(schema);
  if (!known.ok()) return known.status();
  return NothingCalled(schema, "symbol", symbol, *known);
}

std::string Signature(const MethodDescriptor& method) {
  const auto type = [](bool stream, const google::protobuf::Descriptor* type) {
    return absl::StrCat(stream ? "stream ." : ".", type->full_name());
  };
  return absl::StrCat(
      method.full_name(), "(",
      type(method.client_streaming(), method.input_type()), ") returns (",
      type(method.server_streaming(), method.output_type()), ")");
}

}  // namespace rpc_cli
