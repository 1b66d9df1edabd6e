#include "rpc/compiler/stub_printer.h"

#include <string>
#include <vector>

#include "rpc/compiler/comments.h"
#include "rpc/compiler/method_text.h"
#include "rpc/compiler/stub_functions.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::io::Printer;

Variables VariablesFor(const MethodModel& method,
                       const StubFunction& function) {
  Variables variables = VariablesOf(method, function.signature);
  variables["function"] = function.name;
  variables["type"] = function.type;
  variables["virtual_function"] = function.virtual_name();
  variables["virtual_type"] = function.virtual_type();
  variables["body"] = function.body;
  return variables;
}

void PrintVirtual(StubClass stub_class, const Variables& variables,
                  Printer& printer) {
  PrintText(variables,
            stub_class == StubClass::kInterface
                ? R"(virtual $virtual_type$ $virtual_function$(
    $parameters$) = 0;
)"
                : R"($virtual_type$ $virtual_function$(
    $parameters$) override;
)",
            printer);
}

void PrintPublic(const MethodModel& method,
                 const std::vector<StubFunction>& functions,
                 StubClass stub_class, Printer& printer) {
  for (const StubFunction& function : functions) {
    const Variables variables = VariablesFor(method, function);
    PrintText(variables, "$deprecated$", printer);
    if (!function.makes_call) {
      PrintVirtual(stub_class, variables, printer);
      continue;
    }
    PrintText(variables, R"(::std::unique_ptr<
    $type$>
$function$(
    $parameters$) {
  return ::std::unique_ptr<
      $type$>(
      $virtual_function$($arguments$));
}
)",
              printer);
  }
}

// The virtual functions behind the public ones that make a call's object.
void PrintPrivate(const ServiceModel& service, StubClass stub_class,
                  Printer& printer) {
  for (const MethodModel& method : service.methods) {
    for (const StubFunction& function : StubFunctions(method, stub_class)) {
      if (!function.makes_call) continue;
      PrintVirtual(stub_class, VariablesFor(method, function), printer);
    }
  }
}

// The functions that are not the stub's own, but of an object that it hands
// out: stub->async()->Get(...). The object's class and its function have one
// name.
struct Face {
  std::string name;
  std::vector<StubFunction> (*functions)(const MethodModel& method);
};

Face AsyncFace() { return {"async", &AsyncFunctions}; }
Face CoroFace() { return {"coro", &CoroFunctions}; }

void PrintFaceInterface(const ServiceModel& service, const Face& face,
                        Printer& printer) {
  printer.Print(R"(
class $face$_interface {
 public:
  virtual ~$face$_interface() {}
)",
                "face", face.name);
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    PrintComment(method.comments.leading, printer);
    PrintPublic(method, face.functions(method), StubClass::kInterface, printer);
    PrintComment(method.comments.trailing, printer);
  }
  printer.Outdent();
  printer.Print(R"(};
virtual class $face$_interface* $face$() { return nullptr; }
)",
                "face", face.name);
}

void PrintInterfaces(const ServiceModel& service, Printer& printer) {
  PrintFaceInterface(service, AsyncFace(), printer);
  printer.Print(R"(typedef class async_interface experimental_async_interface;
class async_interface* experimental_async() { return async(); }
)");
  PrintFaceInterface(service, CoroFace(), printer);
}

void PrintFace(const ServiceModel& service, const Face& face,
               Printer& printer) {
  printer.Print(R"(
class $face$ final : public StubInterface::$face$_interface {
 public:
)",
                "face", face.name);
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    PrintPublic(method, face.functions(method), StubClass::kStub, printer);
  }
  printer.Outdent();
  printer.Print(R"(
 private:
  friend class Stub;
  explicit $face$(Stub* stub) : stub_(stub) {}
  [[maybe_unused]] Stub* stub_;
};
class $face$* $face$() override { return &$face$_stub_; }
)",
                "face", face.name);
}

void PrintNewStub(const ServiceModel& service, Printer& printer) {
  if (service.deprecated) {
    // Clients are told; a server has to implement the service all the same.
    printer.Print("[[deprecated(\"$name$\")]] ", "name", service.full_name);
  }
  printer.Print(R"(static ::std::unique_ptr<Stub> NewStub(
    const ::std::shared_ptr<::rpc::ChannelInterface>& channel,
    const ::rpc::StubOptions& options = ::rpc::StubOptions());
)");
}

void PrintConstruction(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(::std::unique_ptr<$Service$::Stub> $Service$::NewStub(
    const ::std::shared_ptr<::rpc::ChannelInterface>& channel,
    const ::rpc::StubOptions& options) {
  return ::std::make_unique<Stub>(channel, options);
}

$Service$::Stub::Stub(
    const ::std::shared_ptr<::rpc::ChannelInterface>& channel,
    [[maybe_unused]] const ::rpc::StubOptions& options)
    : channel_(channel))",
                "Service", service.class_name);
  for (const MethodModel& method : service.methods) {
    printer.Print(VariablesOf(method), R"(,
      rpcmethod_$index$_(
          "$path$", options.suffix_for_stats(),
          ::rpc::internal::RpcMethod::$rpc_type$, channel,
          ::rpc::internal::kMessagesOf<$Request$, $Response$>))");
  }
  printer.Print(" {}\n");
}

// `class_name`: the class that has the functions.
void PrintDefinitions(const std::string& class_name, const MethodModel& method,
                      const std::vector<StubFunction>& functions,
                      Printer& printer) {
  for (const StubFunction& function : functions) {
    Variables variables = VariablesFor(method, function);
    variables["Class"] = class_name;
    PrintText(variables, R"(
$virtual_type$ $Class$::$virtual_function$(
    $parameters$) {
  $body$
}
)",
              printer);
  }
}

}  // namespace

void PrintStubInterface(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(class StubInterface {
 public:
  virtual ~StubInterface() {}
)");
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    PrintComment(method.comments.leading, printer);
    PrintPublic(method, StubFunctions(method, StubClass::kInterface),
                StubClass::kInterface, printer);
    PrintComment(method.comments.trailing, printer);
  }
  PrintInterfaces(service, printer);
  printer.Outdent();
  printer.Print("\n private:\n");
  printer.Indent();
  PrintPrivate(service, StubClass::kInterface, printer);
  printer.Outdent();
  printer.Print("};\n");
}

void PrintStub(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(class Stub final : public StubInterface {
 public:
  Stub(const ::std::shared_ptr<::rpc::ChannelInterface>& channel,
       const ::rpc::StubOptions& options = ::rpc::StubOptions());
)");
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    PrintPublic(method, StubFunctions(method, StubClass::kStub),
                StubClass::kStub, printer);
  }
  PrintFace(service, AsyncFace(), printer);
  PrintFace(service, CoroFace(), printer);
  printer.Outdent();
  printer.Print("\n private:\n");
  printer.Indent();
  PrintPrivate(service, StubClass::kStub, printer);
  printer.Print(R"(::std::shared_ptr<::rpc::ChannelInterface> channel_;
class async async_stub_{this};
class coro coro_stub_{this};
)");
  for (const MethodModel& method : service.methods) {
    printer.Print(VariablesOf(method),
                  "const ::rpc::internal::RpcMethod rpcmethod_$index$_;\n");
  }
  printer.Outdent();
  printer.Print("};\n\n");
  PrintNewStub(service, printer);
}

void PrintStubDefinitions(const ServiceModel& service, Printer& printer) {
  PrintConstruction(service, printer);
  const std::string stub = service.class_name + "::Stub";
  for (const MethodModel& method : service.methods) {
    PrintDefinitions(stub, method, StubFunctions(method, StubClass::kStub),
                     printer);
    for (const Face& face : {AsyncFace(), CoroFace()}) {
      PrintDefinitions(stub + "::" + face.name, method, face.functions(method),
                       printer);
    }
  }
}

}  // namespace rpc::compiler
