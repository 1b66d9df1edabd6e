#include "rpc/compiler/mock_printer.h"

#include "rpc/compiler/method_text.h"
#include "rpc/compiler/stub_functions.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::io::Printer;

void PrintMockMethod(const MethodModel& method, const StubFunction& function,
                     Printer& printer) {
  Variables variables = VariablesOf(method, function.signature);
  variables["function"] = function.virtual_name();
  variables["type"] = function.virtual_type();
  // A type may have commas, which would separate the macro's arguments.
  PrintText(variables, R"(MOCK_METHOD(
    ($type$),
    $function$,
    ($parameters$),
    (override));
)",
            printer);
}

}  // namespace

void PrintMockStub(const ServiceModel& service, Printer& printer) {
  printer.Print(R"(class $Mock$ : public $Service$::StubInterface {
 public:
)",
                "Mock", service.mock_name, "Service", service.class_name);
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    for (const StubFunction& function :
         StubFunctions(method, StubClass::kInterface)) {
      PrintMockMethod(method, function, printer);
    }
  }
  printer.Outdent();
  printer.Print("};\n");
}

}  // namespace rpc::compiler
