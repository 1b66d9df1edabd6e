#include "rpc/compiler/streaming_method_printer.h"

#include "absl/strings/str_cat.h"

namespace rpc::compiler {

// What the three kinds differ in: Reader, Writer and ReaderWriter are the
// classes of sync_stream.h without their side.
StreamingMethodPrinter::Variables StreamingMethodPrinter::VariablesOf(
    const MethodModel& method) const {
  Variables variables = {
      {"Method", method.function},
      {"Request", method.request_type},
      {"Response", method.response_type},
      {"path", method.path},
      {"index", absl::StrCat(method.index)},
      {"type", rpc_type()},
      {"deprecated", method.deprecated ? absl::StrCat("[[deprecated(\"",
                                                      method.path, "\")]] ")
                                       : ""},
  };
  const std::string& request = method.request_type;
  const std::string& response = method.response_type;
  std::string parameters;  // of the handler, after the context
  switch (kind_) {
    case MethodKind::kUnary:
      break;
    case MethodKind::kClientStreaming:
      variables["Stream"] = "ClientWriter";
      variables["messages"] = request;
      variables["parameter"] = absl::StrCat(", ", response, "* response");
      variables["argument"] = ", response";
      variables["Handler"] = "ClientStreamingHandler";
      parameters = absl::StrCat("::rpc::ServerReader<", request, ">* reader, ",
                                response, "* response");
      variables["handler_arguments"] = "reader, response";
      variables["unnamed"] =
          absl::StrCat("::rpc::ServerReader<", request, ">* /*reader*/, ",
                       response, "* /*response*/");
      break;
    case MethodKind::kServerStreaming:
      variables["Stream"] = "ClientReader";
      variables["messages"] = response;
      variables["parameter"] = absl::StrCat(", const ", request, "& request");
      variables["argument"] = ", request";
      variables["Handler"] = "ServerStreamingHandler";
      parameters =
          absl::StrCat("const ", request, "* request, ::rpc::ServerWriter<",
                       response, ">* writer");
      variables["handler_arguments"] = "request, writer";
      variables["unnamed"] =
          absl::StrCat("const ", request, "* /*request*/, ::rpc::ServerWriter<",
                       response, ">* /*writer*/");
      break;
    case MethodKind::kBidiStreaming:
      variables["Stream"] = "ClientReaderWriter";
      variables["messages"] = absl::StrCat(request, ", ", response);
      variables["parameter"] = "";
      variables["argument"] = "";
      variables["Handler"] = "BidiStreamingHandler";
      parameters = absl::StrCat("::rpc::ServerReaderWriter<", response, ", ",
                                request, ">* stream");
      variables["handler_arguments"] = "stream";
      variables["unnamed"] =
          absl::StrCat("::rpc::ServerReaderWriter<", response, ", ", request,
                       ">* /*stream*/");
      break;
  }
  variables["handler_parameters"] = parameters;
  return variables;
}

const char* StreamingMethodPrinter::rpc_type() const {
  switch (kind_) {
    case MethodKind::kUnary:
      break;
    case MethodKind::kClientStreaming:
      return "CLIENT_STREAMING";
    case MethodKind::kServerStreaming:
      return "SERVER_STREAMING";
    case MethodKind::kBidiStreaming:
      return "BIDI_STREAMING";
  }
  return "";
}

void StreamingMethodPrinter::PrintStubInterface(const MethodModel& method,
                                                Printer& printer) const {
  printer.Print(VariablesOf(method),
                R"($deprecated$::std::unique_ptr<
    ::rpc::$Stream$Interface<$messages$>>
$Method$(
    ::rpc::ClientContext* context$parameter$) {
  return ::std::unique_ptr<
      ::rpc::$Stream$Interface<$messages$>>(
      $Method$Raw(context$argument$));
}
)");
}

void StreamingMethodPrinter::PrintStubInterfaceRaw(const MethodModel& method,
                                                   Printer& printer) const {
  printer.Print(VariablesOf(method),
                R"(virtual ::rpc::$Stream$Interface<$messages$>*
$Method$Raw(
    ::rpc::ClientContext* context$parameter$) = 0;
)");
}

void StreamingMethodPrinter::PrintStubDeclaration(const MethodModel& method,
                                                  Printer& printer) const {
  printer.Print(VariablesOf(method),
                R"($deprecated$::std::unique_ptr<
    ::rpc::$Stream$<$messages$>>
$Method$(
    ::rpc::ClientContext* context$parameter$) {
  return ::std::unique_ptr<
      ::rpc::$Stream$<$messages$>>(
      $Method$Raw(context$argument$));
}
)");
}

void StreamingMethodPrinter::PrintStubRaw(const MethodModel& method,
                                          Printer& printer) const {
  printer.Print(VariablesOf(method),
                R"(::rpc::$Stream$<$messages$>*
$Method$Raw(
    ::rpc::ClientContext* context$parameter$) override;
)");
}

void StreamingMethodPrinter::PrintServiceDeclaration(const MethodModel& method,
                                                     Printer& printer) const {
  printer.Print(VariablesOf(method),
                R"(virtual ::rpc::Status $Method$(
    ::rpc::ServerContext* context,
    $handler_parameters$);
)");
}

void StreamingMethodPrinter::PrintStubDefinitions(
    const std::string& service_class, const MethodModel& method,
    Printer& printer) const {
  Variables variables = VariablesOf(method);
  variables["Service"] = service_class;
  printer.Print(variables,
                R"(::rpc::$Stream$<$messages$>*
$Service$::Stub::$Method$Raw(
    ::rpc::ClientContext* context$parameter$) {
  return ::rpc::internal::$Stream$Factory<
      $messages$>::Create(
      channel_.get(), rpcmethod_$index$_, context$argument$);
}
)");
}

void StreamingMethodPrinter::PrintRegistration(const MethodModel& method,
                                               Printer& printer) const {
  printer.Print(
      VariablesOf(method),
      R"(::rpc::Service::AddMethod(new ::rpc::internal::RpcServiceMethod(
    "$path$",
    ::rpc::internal::RpcMethod::$type$,
    new ::rpc::internal::$Handler$<
        Service,
        $Request$,
        $Response$>(
        [](Service* service,
           ::rpc::ServerContext* context,
           $handler_parameters$) {
          return service->$Method$(context, $handler_arguments$);
        },
        this)));
)");
}

void StreamingMethodPrinter::PrintServiceDefinition(
    const std::string& service_class, const MethodModel& method,
    Printer& printer) const {
  Variables variables = VariablesOf(method);
  variables["Service"] = service_class;
  printer.Print(variables,
                R"(::rpc::Status $Service$::Service::$Method$(
    ::rpc::ServerContext* /*context*/,
    $unnamed$) {
  return ::rpc::Status(::rpc::StatusCode::UNIMPLEMENTED, "");
}
)");
}

}  // namespace rpc::compiler
