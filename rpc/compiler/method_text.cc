#include "rpc/compiler/method_text.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rpc::compiler {

std::string Signature::Declared() const {
  return absl::StrJoin(
      parameters_, ",\n", [](std::string* out, const Parameter& parameter) {
        absl::StrAppend(out, parameter.type, " ", parameter.name);
      });
}

std::string Signature::Unnamed() const {
  return absl::StrJoin(
      parameters_, ",\n", [](std::string* out, const Parameter& parameter) {
        absl::StrAppend(out, parameter.type, " /*", parameter.name, "*/");
      });
}

std::string Signature::Arguments() const {
  return absl::StrJoin(parameters_, ", ",
                       [](std::string* out, const Parameter& parameter) {
                         out->append(parameter.name);
                       });
}

bool ClientStreams(MethodKind kind) {
  return kind == MethodKind::kClientStreaming ||
         kind == MethodKind::kBidiStreaming;
}

bool ServerStreams(MethodKind kind) {
  return kind == MethodKind::kServerStreaming ||
         kind == MethodKind::kBidiStreaming;
}

Signature ContextAndMessages(std::string context_type,
                             const MethodModel& method,
                             absl::string_view request_reference) {
  Signature signature = {{std::move(context_type), "context"}};
  if (!ClientStreams(method.kind)) {
    signature.Add(
        {absl::StrCat("const ", method.request_type, request_reference),
         "request"});
  }
  if (!ServerStreams(method.kind)) {
    signature.Add({absl::StrCat(method.response_type, "*"), "response"});
  }
  return signature;
}

std::string WordOf(MethodKind kind, const KindWords& words) {
  switch (kind) {
    case MethodKind::kUnary:
      return std::string(words.unary);
    case MethodKind::kClientStreaming:
      return std::string(words.client_streaming);
    case MethodKind::kServerStreaming:
      return std::string(words.server_streaming);
    case MethodKind::kBidiStreaming:
      return std::string(words.bidi_streaming);
  }
  std::abort();
}

std::string TextOf(const MethodModel& method, const KindWords& texts) {
  return Fill(VariablesOf(method), WordOf(method.kind, texts));
}

Variables VariablesOf(const MethodModel& method) {
  return {
      {"Method", method.function},
      {"Request", method.request_type},
      {"Response", method.response_type},
      {"path", method.path},
      {"index", absl::StrCat(method.index)},
      {"rpc_type", WordOf(method.kind, {.unary = "NORMAL_RPC",
                                        .client_streaming = "CLIENT_STREAMING",
                                        .server_streaming = "SERVER_STREAMING",
                                        .bidi_streaming = "BIDI_STREAMING"})},
      {"deprecated", method.deprecated ? absl::StrCat("[[deprecated(\"",
                                                      method.path, "\")]] ")
                                       : ""},
  };
}

Variables VariablesOf(const MethodModel& method, const Signature& signature) {
  Variables variables = VariablesOf(method);
  variables["parameters"] = signature.Declared();
  variables["unnamed_parameters"] = signature.Unnamed();
  variables["arguments"] = signature.Arguments();
  return variables;
}

}  // namespace rpc::compiler
