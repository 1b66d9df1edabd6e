#include "rpc/compiler/async_method_printer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/compiler/method_text.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

// The object that the server answers a call with.
Signature::Parameter AnswerParameter(const MethodModel& method) {
  return {
      TextOf(method,
             {.unary = "::rpc::ServerAsyncResponseWriter<$Response$>*",
              .client_streaming =
                  "::rpc::ServerAsyncReader<$Response$, $Request$>*",
              .server_streaming = "::rpc::ServerAsyncWriter<$Response$>*",
              .bidi_streaming =
                  "::rpc::ServerAsyncReaderWriter<$Response$, $Request$>*"}),
      WordOf(method.kind, {.unary = "response",
                           .client_streaming = "reader",
                           .server_streaming = "writer",
                           .bidi_streaming = "stream"})};
}

Signature RequestSignature(const MethodModel& method) {
  Signature signature = {{"::rpc::ServerContext*", "context"}};
  if (!ClientStreams(method.kind)) {
    signature.Add({absl::StrCat(method.request_type, "*"), "request"});
  }
  signature.Add(AnswerParameter(method));
  signature.Add({"::rpc::CompletionQueue*", "new_call_cq"});
  signature.Add({"::rpc::ServerCompletionQueue*", "notification_cq"});
  signature.Add({"void*", "tag"});
  return signature;
}

}  // namespace

MethodClass QueuedMethodClass(const MethodModel& method,
                              absl::string_view form) {
  Variables variables = VariablesOf(method, RequestSignature(method));
  variables["form"] = std::string(form);
  variables["RequestAsync"] =
      WordOf(method.kind, {.unary = "RequestAsyncUnary",
                           .client_streaming = "RequestAsyncClientStreaming",
                           .server_streaming = "RequestAsyncServerStreaming",
                           .bidi_streaming = "RequestAsyncBidiStreaming"});
  return {
      .form = std::string(form),
      .constructor =
          Fill(variables, "::rpc::Service::MarkMethod$form$($index$);"),
      .functions = Fill(variables, R"(void Request$Method$(
    $parameters$) {
  ::rpc::Service::$RequestAsync$(
      $index$, $arguments$);
})"),
  };
}

std::optional<MethodClass> AsyncMethodClass(const MethodModel& method) {
  return QueuedMethodClass(method, "Async");
}

}  // namespace rpc::compiler
