#include "rpc/compiler/coroutine_method_printer.h"

#include <string>

#include "rpc/compiler/blocking_service_printer.h"
#include "rpc/compiler/method_text.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

std::string HandlerOf(MethodKind kind) {
  return WordOf(kind, {.unary = "CoroutineUnaryHandler",
                       .client_streaming = "CoroutineClientStreamingHandler",
                       .server_streaming = "CoroutineServerStreamingHandler",
                       .bidi_streaming = "CoroutineBidiHandler"});
}

}  // namespace

std::optional<MethodClass> CoroutineMethodClass(const MethodModel& method) {
  const Signature signature = HandlerSignature("::rpc::CallbackServerContext*",
                                               "::rpc::CoroServer", method);
  return MethodClass{
      .form = "Coroutine",
      .constructor = MarkWithHandler(method, "Callback", HandlerOf(method.kind),
                                     method.function, signature),
      .functions = Fill(VariablesOf(method, signature),
                        R"(virtual ::rpc::Task<::rpc::Status> $Method$(
    $unnamed_parameters$) {
  return {};
})"),
  };
}

}  // namespace rpc::compiler
