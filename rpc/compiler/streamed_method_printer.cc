#include "rpc/compiler/streamed_method_printer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rpc/compiler/method_text.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

// `streamer`: the class template and the name of what the server's function
// takes.
MethodClass StreamerMethodClass(const MethodModel& method,
                                absl::string_view form,
                                absl::string_view handler,
                                Signature::Parameter streamer) {
  const Signature signature = {
      {"::rpc::ServerContext*", "context"},
      {absl::StrCat("::rpc::", streamer.type, "<", method.request_type, ", ",
                    method.response_type, ">*"),
       streamer.name}};
  return {
      .form = std::string(form),
      .constructor =
          MarkWithHandler(method, "Streamed", handler,
                          absl::StrCat("Streamed", method.function), signature),
      .functions = Fill(VariablesOf(method, signature),
                        R"(virtual ::rpc::Status Streamed$Method$(
    $parameters$) = 0;)"),
  };
}

}  // namespace

std::optional<MethodClass> StreamedUnaryMethodClass(const MethodModel& method) {
  if (method.kind != MethodKind::kUnary) return std::nullopt;
  return StreamerMethodClass(method, "StreamedUnary", "StreamedUnaryHandler",
                             {"ServerUnaryStreamer", "server_unary_streamer"});
}

std::optional<MethodClass> SplitStreamingMethodClass(
    const MethodModel& method) {
  if (method.kind != MethodKind::kServerStreaming) return std::nullopt;
  return StreamerMethodClass(method, "SplitStreaming",
                             "SplitServerStreamingHandler",
                             {"ServerSplitStreamer", "server_split_streamer"});
}

std::optional<MethodClass> StreamedMethodClass(const MethodModel& method) {
  return method.kind == MethodKind::kUnary ? StreamedUnaryMethodClass(method)
                                           : SplitStreamingMethodClass(method);
}

}  // namespace rpc::compiler
