#include "rpc/compiler/stub_functions.h"

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rpc::compiler {
namespace {

// What a function takes that is done with the request when it returns.
Signature CallSignature(const MethodModel& method) {
  return ContextAndMessages("::rpc::ClientContext*", method, "&");
}

StubFunction BlockingUnaryCall(const MethodModel& method) {
  Signature signature = CallSignature(method);
  return {.name = method.function,
          .type = "::rpc::Status",
          .signature = signature,
          .body = Fill(VariablesOf(method, signature),
                       R"(return ::rpc::internal::BlockingUnaryCall<
    $Request$,
    $Response$>(
    channel_.get(), rpcmethod_$index$_, $arguments$);)")};
}

// A function that makes a call's object. `body` may speak of $Call$, the class
// of the object, and of $messages$, what that is a template over.
StubFunction CallFunction(const MethodModel& method, StubClass stub_class,
                          std::string name, const std::string& call_class,
                          const Signature& signature, absl::string_view body) {
  Variables variables = VariablesOf(method, signature);
  variables["Call"] = call_class;
  variables["messages"] =
      TextOf(method, {.unary = "$Response$",
                      .client_streaming = "$Request$",
                      .server_streaming = "$Response$",
                      .bidi_streaming = "$Request$, $Response$"});
  variables["suffix"] = stub_class == StubClass::kInterface ? "Interface" : "";
  return {.name = std::move(name),
          .type = Fill(variables, "::rpc::$Call$$suffix$<$messages$>"),
          .signature = signature,
          .body = Fill(variables, body),
          .makes_call = true};
}

StubFunction BlockingStream(const MethodModel& method, StubClass stub_class) {
  return CallFunction(
      method, stub_class, method.function,
      WordOf(method.kind, {.unary = "",
                           .client_streaming = "ClientWriter",
                           .server_streaming = "ClientReader",
                           .bidi_streaming = "ClientReaderWriter"}),
      CallSignature(method), R"(return ::rpc::internal::$Call$Factory<
    $messages$>::Create(
    channel_.get(), rpcmethod_$index$_, $arguments$);)");
}

// What a call is made from whose events come out of a completion queue. A unary
// one's response is given to its Finish.
Signature QueuedCallSignature(const MethodModel& method) {
  if (method.kind != MethodKind::kUnary) return CallSignature(method);
  return {{"::rpc::ClientContext*", "context"},
          {absl::StrCat("const ", method.request_type, "&"), "request"}};
}

// AsyncX and PrepareAsyncX: `last` follows the queue among the parameters.
StubFunction QueuedCall(const MethodModel& method, StubClass stub_class,
                        absl::string_view prefix,
                        std::initializer_list<Signature::Parameter> last,
                        absl::string_view body) {
  Signature signature = QueuedCallSignature(method);
  signature.Add({"::rpc::CompletionQueue*", "cq"});
  for (const Signature::Parameter& parameter : last) signature.Add(parameter);
  return CallFunction(
      method, stub_class, absl::StrCat(prefix, method.function),
      WordOf(method.kind, {.unary = "ClientAsyncResponseReader",
                           .client_streaming = "ClientAsyncWriter",
                           .server_streaming = "ClientAsyncReader",
                           .bidi_streaming = "ClientAsyncReaderWriter"}),
      signature, body);
}

// `start`: the factory's last arguments.
std::string CreateQueuedCall(const MethodModel& method,
                             absl::string_view start) {
  return absl::StrCat(R"(return ::rpc::internal::$Call$Factory<
    $messages$>::Create(
    channel_.get(), cq, rpcmethod_$index$_, )",
                      QueuedCallSignature(method).Arguments(), start, ");");
}

StubFunction StartedCall(const MethodModel& method, StubClass stub_class) {
  if (method.kind == MethodKind::kUnary) {
    return QueuedCall(
        method, stub_class, "Async", {},
        R"(auto* const call = PrepareAsync$Method$Raw($arguments$);
call->StartCall();
return call;)");
  }
  return QueuedCall(method, stub_class, "Async", {{"void*", "tag"}},
                    CreateQueuedCall(method, ", true, tag"));
}

StubFunction PreparedCall(const MethodModel& method, StubClass stub_class) {
  const bool is_unary = method.kind == MethodKind::kUnary;
  return QueuedCall(
      method, stub_class, "PrepareAsync", {},
      CreateQueuedCall(method, is_unary ? "" : ", false, nullptr"));
}

// A function that returns at once, and takes `last` what tells of the call.
StubFunction AsyncFunction(const MethodModel& method, Signature::Parameter last,
                           absl::string_view body) {
  Signature signature =
      ContextAndMessages("::rpc::ClientContext*", method, "*");
  signature.Add(std::move(last));
  return {.name = method.function,
          .type = "void",
          .signature = signature,
          .body = Fill(VariablesOf(method, signature), body)};
}

StubFunction WithCallback(const MethodModel& method) {
  return AsyncFunction(method,
                       {"::std::function<void(::rpc::Status)>", "callback"},
                       R"(::rpc::internal::CallbackUnaryCall<
    $Request$,
    $Response$>(
    stub_->channel_.get(), stub_->rpcmethod_$index$_,
    context, request, response, ::std::move(callback));)");
}

StubFunction WithReactor(const MethodModel& method) {
  const std::string reactor = TextOf(
      method,
      {.unary = "::rpc::ClientUnaryReactor*",
       .client_streaming = "::rpc::ClientWriteReactor<$Request$>*",
       .server_streaming = "::rpc::ClientReadReactor<$Response$>*",
       .bidi_streaming = "::rpc::ClientBidiReactor<$Request$, $Response$>*"});
  const std::string create =
      TextOf(method, {.unary = R"(ClientCallbackUnaryFactory::Create<
    $Request$,
    $Response$>)",
                      .client_streaming = R"(ClientCallbackWriterFactory<
    $Request$>::Create)",
                      .server_streaming = R"(ClientCallbackReaderFactory<
    $Response$>::Create)",
                      .bidi_streaming = R"(ClientCallbackReaderWriterFactory<
    $Request$, $Response$>::Create)"});
  return AsyncFunction(method, {reactor, "reactor"},
                       absl::StrCat("::rpc::internal::", create, R"((
    stub_->channel_.get(), stub_->rpcmethod_$index$_,
    $arguments$);)"));
}

// The unary call's object is the awaiter, which lives in its coroutine's frame;
// a stream's is its caller's.
StubFunction Awaited(const MethodModel& method) {
  Signature signature = CallSignature(method);
  const std::string call = TextOf(
      method, {.unary = "::rpc::CoroUnaryCall",
               .client_streaming = "::rpc::CoroClientWriter<$Request$>",
               .server_streaming = "::rpc::CoroClientReader<$Response$>",
               .bidi_streaming = "::rpc::CoroClientReaderWriter<$Request$, "
                                 "$Response$>"});
  Variables variables = VariablesOf(method, signature);
  variables["Call"] = call;
  const bool is_unary = method.kind == MethodKind::kUnary;
  return {.name = method.function,
          .type = is_unary ? call : Fill(variables, R"(::std::unique_ptr<
    $Call$>)"),
          .signature = signature,
          .body = Fill(variables, is_unary ? R"(return $Call$(
    stub_->channel_.get(), stub_->rpcmethod_$index$_,
    $arguments$);)"
                                           : R"(return ::std::make_unique<
    $Call$>(
    stub_->channel_.get(), stub_->rpcmethod_$index$_,
    $arguments$);)")};
}

}  // namespace

std::vector<StubFunction> StubFunctions(const MethodModel& method,
                                        StubClass stub_class) {
  return {method.kind == MethodKind::kUnary
              ? BlockingUnaryCall(method)
              : BlockingStream(method, stub_class),
          StartedCall(method, stub_class), PreparedCall(method, stub_class)};
}

std::vector<StubFunction> AsyncFunctions(const MethodModel& method) {
  if (method.kind != MethodKind::kUnary) return {WithReactor(method)};
  return {WithCallback(method), WithReactor(method)};
}

std::vector<StubFunction> CoroFunctions(const MethodModel& method) {
  return {Awaited(method)};
}

}  // namespace rpc::compiler
