#include "rpc/compiler/callback_method_printer.h"

#include <string>

#include "rpc/compiler/method_text.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

std::string HandlerOf(MethodKind kind) {
  return WordOf(kind, {.unary = "CallbackUnaryHandler",
                       .client_streaming = "CallbackClientStreamingHandler",
                       .server_streaming = "CallbackServerStreamingHandler",
                       .bidi_streaming = "CallbackBidiHandler"});
}

// Over the messages that are streamed.
std::string ReactorOf(const MethodModel& method) {
  return TextOf(
      method,
      {.unary = "::rpc::ServerUnaryReactor",
       .client_streaming = "::rpc::ServerReadReactor<$Request$>",
       .server_streaming = "::rpc::ServerWriteReactor<$Response$>",
       .bidi_streaming = "::rpc::ServerBidiReactor<$Request$, $Response$>"});
}

}  // namespace

MethodClass ReactorMethodClass(const MethodModel& method,
                               absl::string_view form) {
  const Signature signature =
      ContextAndMessages("::rpc::CallbackServerContext*", method, "*");
  Variables variables = VariablesOf(method, signature);
  variables["Reactor"] = ReactorOf(method);
  return {
      .form = std::string(form),
      .constructor = MarkWithHandler(method, form, HandlerOf(method.kind),
                                     method.function, signature),
      .functions = Fill(variables, R"(virtual $Reactor$* $Method$(
    $unnamed_parameters$) {
  return nullptr;
})"),
  };
}

std::optional<MethodClass> CallbackMethodClass(const MethodModel& method) {
  MethodClass method_class = ReactorMethodClass(method, "Callback");
  if (method.kind == MethodKind::kUnary) {
    method_class.functions += Fill(VariablesOf(method), R"(
void SetMessageAllocatorFor_$Method$(
    ::rpc::MessageAllocator<$Request$, $Response$>* allocator) {
  static_cast<::rpc::internal::CallbackUnaryHandler<$Request$, $Response$>*>(
      ::rpc::Service::GetHandler($index$))->SetMessageAllocator(allocator);
})");
  }
  return method_class;
}

}  // namespace rpc::compiler
