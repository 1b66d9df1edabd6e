#include "rpc/compiler/blocking_service_printer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/compiler/comments.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::io::Printer;

// The parameter for the messages that are streamed.
Signature::Parameter StreamParameter(absl::string_view stream_prefix,
                                     const MethodModel& method) {
  const std::string stream_class = TextOf(
      method, {.unary = "",
               .client_streaming = "Reader<$Request$>*",
               .server_streaming = "Writer<$Response$>*",
               .bidi_streaming = "ReaderWriter<$Response$, $Request$>*"});
  return {absl::StrCat(stream_prefix, stream_class),
          WordOf(method.kind, {.unary = "",
                               .client_streaming = "reader",
                               .server_streaming = "writer",
                               .bidi_streaming = "stream"})};
}

// A statement in Service's constructor.
void PrintRegistration(const MethodModel& method, Printer& printer) {
  Variables variables = VariablesOf(method, BlockingSignature(method));
  variables["Handler"] =
      WordOf(method.kind, {
                              .unary = "RpcMethodHandler",
                              .client_streaming = "ClientStreamingHandler",
                              .server_streaming = "ServerStreamingHandler",
                              .bidi_streaming = "BidiStreamingHandler",
                          });
  PrintText(variables,
            R"(::rpc::Service::AddMethod(new ::rpc::internal::RpcServiceMethod(
    "$path$",
    ::rpc::internal::RpcMethod::$rpc_type$,
    new ::rpc::internal::$Handler$<
        Service,
        $Request$,
        $Response$>(
        [](Service* service,
           $parameters$) {
          return service->$Method$($arguments$);
        },
        this),
    ::rpc::internal::kMessagesOf<$Request$, $Response$>));
)",
            printer);
}

}  // namespace

Signature BlockingSignature(const MethodModel& method) {
  return HandlerSignature("::rpc::ServerContext*", "::rpc::Server", method);
}

Signature HandlerSignature(std::string context_type,
                           absl::string_view stream_prefix,
                           const MethodModel& method) {
  Signature signature = {{std::move(context_type), "context"}};
  if (!ClientStreams(method.kind)) {
    signature.Add(
        {absl::StrCat("const ", method.request_type, "*"), "request"});
  }
  if (method.kind != MethodKind::kUnary) {
    signature.Add(StreamParameter(stream_prefix, method));
  }
  if (!ServerStreams(method.kind)) {
    signature.Add({absl::StrCat(method.response_type, "*"), "response"});
  }
  return signature;
}

void PrintBlockingService(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(class Service : public ::rpc::Service {
 public:
  Service();
  ~Service() override;
)");
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    PrintComment(method.comments.leading, printer);
    PrintText(VariablesOf(method, BlockingSignature(method)),
              R"(virtual ::rpc::Status $Method$(
    $parameters$);
)",
              printer);
    PrintComment(method.comments.trailing, printer);
  }
  printer.Outdent();
  printer.Print("};\n");
}

void PrintBlockingServiceDefinitions(const ServiceModel& service,
                                     Printer& printer) {
  printer.Print("$Service$::Service::Service() {\n", "Service",
                service.class_name);
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    PrintRegistration(method, printer);
  }
  printer.Outdent();
  printer.Print("}\n\n$Service$::Service::~Service() {}\n", "Service",
                service.class_name);
  for (const MethodModel& method : service.methods) {
    Variables variables = VariablesOf(method, BlockingSignature(method));
    variables["Service"] = service.class_name;
    PrintText(variables, R"(
::rpc::Status $Service$::Service::$Method$(
    $unnamed_parameters$) {
  return ::rpc::Status(::rpc::StatusCode::UNIMPLEMENTED, "");
}
)",
              printer);
  }
}

}  // namespace rpc::compiler
