#include "rpc/compiler/unary_method_printer.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace rpc::compiler {
namespace {

using Variables = std::map<std::string, std::string>;

Variables VariablesOf(const MethodModel& method) {
  return {
      {"Method", method.function},
      {"Request", method.request_type},
      {"Response", method.response_type},
      {"path", method.path},
      {"index", absl::StrCat(method.index)},
      {"deprecated", method.deprecated ? absl::StrCat("[[deprecated(\"",
                                                      method.path, "\")]] ")
                                       : ""},
  };
}

Variables VariablesOf(const std::string& service_class,
                      const MethodModel& method) {
  Variables variables = VariablesOf(method);
  variables["Service"] = service_class;
  return variables;
}

}  // namespace

void UnaryMethodPrinter::PrintStubInterface(const MethodModel& method,
                                            Printer& printer) const {
  printer.Print(VariablesOf(method),
                R"($deprecated$virtual ::rpc::Status $Method$(
    ::rpc::ClientContext* context,
    const $Request$& request,
    $Response$* response) = 0;
)");
}

void UnaryMethodPrinter::PrintAsyncInterface(const MethodModel& method,
                                             Printer& printer) const {
  printer.Print(VariablesOf(method),
                R"($deprecated$virtual void $Method$(
    ::rpc::ClientContext* context,
    const $Request$* request,
    $Response$* response,
    ::std::function<void(::rpc::Status)> callback) = 0;
$deprecated$virtual void $Method$(
    ::rpc::ClientContext* context,
    const $Request$* request,
    $Response$* response,
    ::rpc::ClientUnaryReactor* reactor) = 0;
)");
}

void UnaryMethodPrinter::PrintStubDeclaration(const MethodModel& method,
                                              Printer& printer) const {
  printer.Print(VariablesOf(method), R"($deprecated$::rpc::Status $Method$(
    ::rpc::ClientContext* context,
    const $Request$& request,
    $Response$* response) override;
)");
}

void UnaryMethodPrinter::PrintAsyncDeclaration(const MethodModel& method,
                                               Printer& printer) const {
  printer.Print(VariablesOf(method), R"($deprecated$void $Method$(
    ::rpc::ClientContext* context,
    const $Request$* request,
    $Response$* response,
    ::std::function<void(::rpc::Status)> callback) override;
$deprecated$void $Method$(
    ::rpc::ClientContext* context,
    const $Request$* request,
    $Response$* response,
    ::rpc::ClientUnaryReactor* reactor) override;
)");
}

void UnaryMethodPrinter::PrintServiceDeclaration(const MethodModel& method,
                                                 Printer& printer) const {
  printer.Print(VariablesOf(method), R"(virtual ::rpc::Status $Method$(
    ::rpc::ServerContext* context,
    const $Request$* request,
    $Response$* response);
)");
}

void UnaryMethodPrinter::PrintCallbackClass(const MethodModel& method,
                                            Printer& printer) const {
  printer.Print(VariablesOf(method), R"(template <class BaseClass>
class WithCallbackMethod_$Method$ : public BaseClass {
  static_assert(::std::is_base_of<Service, BaseClass>::value,
                "BaseClass must be Service or derive from it");

 public:
  WithCallbackMethod_$Method$() {
    ::rpc::Service::MarkMethodCallback(
        $index$,
        new ::rpc::internal::CallbackUnaryHandler<
            $Request$,
            $Response$>(
            [this](::rpc::CallbackServerContext* context,
                   const $Request$* request,
                   $Response$* response) {
              return this->$Method$(context, request, response);
            }));
  }

  // Replaced by the callback form: the runtime does not call it.
  ::rpc::Status $Method$(
      ::rpc::ServerContext* /*context*/,
      const $Request$* /*request*/,
      $Response$* /*response*/) override {
    ::std::abort();
  }
  virtual ::rpc::ServerUnaryReactor* $Method$(
      ::rpc::CallbackServerContext* /*context*/,
      const $Request$* /*request*/,
      $Response$* /*response*/) {
    return nullptr;
  }
};
)");
}

void UnaryMethodPrinter::PrintStubDefinitions(const std::string& service_class,
                                              const MethodModel& method,
                                              Printer& printer) const {
  printer.Print(VariablesOf(service_class, method),
                R"(::rpc::Status $Service$::Stub::$Method$(
    ::rpc::ClientContext* context,
    const $Request$& request,
    $Response$* response) {
  return ::rpc::internal::BlockingUnaryCall<
      $Request$,
      $Response$>(
      channel_.get(), rpcmethod_$index$_, context, request, response);
}

void $Service$::Stub::async::$Method$(
    ::rpc::ClientContext* context,
    const $Request$* request,
    $Response$* response,
    ::std::function<void(::rpc::Status)> callback) {
  ::rpc::internal::CallbackUnaryCall<
      $Request$,
      $Response$>(
      stub_->channel_.get(), stub_->rpcmethod_$index$_, context, request,
      response, ::std::move(callback));
}

void $Service$::Stub::async::$Method$(
    ::rpc::ClientContext* context,
    const $Request$* request,
    $Response$* response,
    ::rpc::ClientUnaryReactor* reactor) {
  ::rpc::internal::ClientCallbackUnaryFactory::Create<
      $Request$,
      $Response$>(
      stub_->channel_.get(), stub_->rpcmethod_$index$_, context, request,
      response, reactor);
}
)");
}

void UnaryMethodPrinter::PrintRegistration(const MethodModel& method,
                                           Printer& printer) const {
  printer.Print(
      VariablesOf(method),
      R"(::rpc::Service::AddMethod(new ::rpc::internal::RpcServiceMethod(
    "$path$",
    ::rpc::internal::RpcMethod::NORMAL_RPC,
    new ::rpc::internal::RpcMethodHandler<
        Service,
        $Request$,
        $Response$>(
        [](Service* service,
           ::rpc::ServerContext* context,
           const $Request$* request,
           $Response$* response) {
          return service->$Method$(context, request, response);
        },
        this)));
)");
}

void UnaryMethodPrinter::PrintServiceDefinition(
    const std::string& service_class, const MethodModel& method,
    Printer& printer) const {
  printer.Print(VariablesOf(service_class, method),
                R"(::rpc::Status $Service$::Service::$Method$(
    ::rpc::ServerContext* /*context*/,
    const $Request$* /*request*/,
    $Response$* /*response*/) {
  return ::rpc::Status(::rpc::StatusCode::UNIMPLEMENTED, "");
}
)");
}

}  // namespace rpc::compiler
