// The pieces of generated code for methods with one request and one response.
// See method_printer.h.
#ifndef VERBENA_RPC_COMPILER_UNARY_METHOD_PRINTER_H_
#define VERBENA_RPC_COMPILER_UNARY_METHOD_PRINTER_H_

#include <string>

#include "rpc/compiler/method_printer.h"

namespace rpc::compiler {

class UnaryMethodPrinter final : public MethodPrinter {
 public:
  void PrintStubInterface(const MethodModel& method,
                          Printer& printer) const override;
  void PrintAsyncInterface(const MethodModel& method,
                           Printer& printer) const override;
  void PrintStubDeclaration(const MethodModel& method,
                            Printer& printer) const override;
  void PrintAsyncDeclaration(const MethodModel& method,
                             Printer& printer) const override;
  void PrintServiceDeclaration(const MethodModel& method,
                               Printer& printer) const override;
  void PrintCallbackClass(const MethodModel& method,
                          Printer& printer) const override;
  void PrintStubDefinitions(const std::string& service_class,
                            const MethodModel& method,
                            Printer& printer) const override;
  void PrintRegistration(const MethodModel& method,
                         Printer& printer) const override;
  void PrintServiceDefinition(const std::string& service_class,
                              const MethodModel& method,
                              Printer& printer) const override;
  const char* rpc_type() const override { return "NORMAL_RPC"; }
};

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_UNARY_METHOD_PRINTER_H_
