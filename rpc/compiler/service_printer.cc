#include "rpc/compiler/service_printer.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/compiler/comments.h"
#include "rpc/compiler/method_printer.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::io::Printer;

// Prints one piece for each method, with the method's comments around it.
using Piece = void (MethodPrinter::*)(const MethodModel&, Printer&) const;

void PrintEachCommented(const ServiceModel& service, Piece piece,
                        Printer& printer) {
  for (const MethodModel& method : service.methods) {
    PrintComment(method.comments.leading, printer);
    (PrinterOf(method.kind).*piece)(method, printer);
    PrintComment(method.comments.trailing, printer);
  }
}

void PrintEach(const ServiceModel& service, Piece piece, Printer& printer) {
  for (const MethodModel& method : service.methods) {
    (PrinterOf(method.kind).*piece)(method, printer);
  }
}

bool HasStreams(const ServiceModel& service) {
  return std::any_of(service.methods.begin(), service.methods.end(),
                     [](const MethodModel& method) {
                       return method.kind != MethodKind::kUnary;
                     });
}

void PrintStubInterface(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(class StubInterface {
 public:
  virtual ~StubInterface() {}
)");
  printer.Indent();
  PrintEachCommented(service, &MethodPrinter::PrintStubInterface, printer);
  printer.Print(R"(
class async_interface {
 public:
  virtual ~async_interface() {}
)");
  printer.Indent();
  PrintEachCommented(service, &MethodPrinter::PrintAsyncInterface, printer);
  printer.Outdent();
  printer.Print(R"(};
typedef class async_interface experimental_async_interface;
virtual class async_interface* async() { return nullptr; }
class async_interface* experimental_async() { return async(); }
)");
  if (HasStreams(service)) {
    printer.Outdent();
    printer.Print("\n private:\n");
    printer.Indent();
    PrintEach(service, &MethodPrinter::PrintStubInterfaceRaw, printer);
  }
  printer.Outdent();
  printer.Print("};\n");
}

void PrintStubAsync(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(
class async final : public StubInterface::async_interface {
 public:
)");
  printer.Indent();
  PrintEach(service, &MethodPrinter::PrintAsyncDeclaration, printer);
  printer.Outdent();
  printer.Print(R"(
 private:
  friend class Stub;
  explicit async(Stub* stub) : stub_(stub) {}
  [[maybe_unused]] Stub* stub_;
};
class async* async() override { return &async_stub_; }
)");
}

void PrintStub(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(class Stub final : public StubInterface {
 public:
  Stub(const ::std::shared_ptr<::rpc::ChannelInterface>& channel,
       const ::rpc::StubOptions& options = ::rpc::StubOptions());
)");
  printer.Indent();
  PrintEach(service, &MethodPrinter::PrintStubDeclaration, printer);
  PrintStubAsync(service, printer);
  printer.Outdent();
  printer.Print("\n private:\n");
  printer.Indent();
  PrintEach(service, &MethodPrinter::PrintStubRaw, printer);
  printer.Outdent();
  printer.Print(R"(  ::std::shared_ptr<::rpc::ChannelInterface> channel_;
  class async async_stub_{this};
)");
  for (const MethodModel& method : service.methods) {
    printer.Print("  const ::rpc::internal::RpcMethod rpcmethod_$index$_;\n",
                  "index", absl::StrCat(method.index));
  }
  printer.Print("};\n");
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

void PrintService(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(class Service : public ::rpc::Service {
 public:
  Service();
  ~Service() override;
)");
  printer.Indent();
  PrintEachCommented(service, &MethodPrinter::PrintServiceDeclaration, printer);
  printer.Outdent();
  printer.Print("};\n");
}

// A service all of whose methods have the callback form, as far as there is one
// (a stream's there is not yet): the class templates,
// one in the other. The first method is the outermost.
void PrintCallbackService(const ServiceModel& service, Printer& printer) {
  std::string type = "Service";
  for (auto method = service.methods.rbegin(); method != service.methods.rend();
       ++method) {
    if (!PrinterOf(method->kind).HasCallbackClass()) continue;
    type = absl::StrCat("WithCallbackMethod_", method->function, "<\n        ",
                        type, ">");
  }
  printer.Print(R"(typedef $type$ CallbackService;
typedef CallbackService ExperimentalCallbackService;
)",
                "type", type);
}

void PrintStubConstruction(const ServiceModel& service, Printer& printer) {
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
    printer.Print(R"(,
      rpcmethod_$index$_(
          "$path$", options.suffix_for_stats(),
          ::rpc::internal::RpcMethod::$type$, channel))",
                  "index", absl::StrCat(method.index), "path", method.path,
                  "type", PrinterOf(method.kind).rpc_type());
  }
  printer.Print(" {}\n");
}

void PrintStubSource(const ServiceModel& service, Printer& printer) {
  PrintStubConstruction(service, printer);
  for (const MethodModel& method : service.methods) {
    printer.Print("\n");
    PrinterOf(method.kind)
        .PrintStubDefinitions(service.class_name, method, printer);
  }
}

void PrintServiceSource(const ServiceModel& service, Printer& printer) {
  printer.Print("$Service$::Service::Service() {\n", "Service",
                service.class_name);
  printer.Indent();
  PrintEach(service, &MethodPrinter::PrintRegistration, printer);
  printer.Outdent();
  printer.Print("}\n\n$Service$::Service::~Service() {}\n", "Service",
                service.class_name);
  for (const MethodModel& method : service.methods) {
    printer.Print("\n");
    PrinterOf(method.kind)
        .PrintServiceDefinition(service.class_name, method, printer);
  }
}

}  // namespace

void PrintServiceClass(const ServiceModel& service, Printer& printer) {
  PrintComment(service.comments.leading, printer);
  printer.Print(R"(class $Service$ final {
 public:
  static constexpr char const* service_full_name() {
    return "$full_name$";
  }

)",
                "Service", service.class_name, "full_name", service.full_name);
  printer.Indent();
  PrintComment(service.comments.trailing, printer);
  PrintStubInterface(service, printer);
  printer.Print("\n");
  PrintStub(service, printer);
  printer.Print("\n");
  PrintNewStub(service, printer);
  printer.Print("\n");
  PrintService(service, printer);
  for (const MethodModel& method : service.methods) {
    if (!PrinterOf(method.kind).HasCallbackClass()) continue;
    printer.Print("\n");
    PrinterOf(method.kind).PrintCallbackClass(method, printer);
  }
  printer.Print("\n");
  PrintCallbackService(service, printer);
  printer.Outdent();
  printer.Print("};\n");
}

void PrintServiceDefinitions(const ServiceModel& service, Printer& printer) {
  PrintStubSource(service, printer);
  printer.Print("\n");
  PrintServiceSource(service, printer);
}

}  // namespace rpc::compiler
