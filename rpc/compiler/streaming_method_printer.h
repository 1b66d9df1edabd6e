// The pieces of generated code for methods that stream, in any direction: they
// differ in types and parameters only. See method_printer.h.
//
// Not there yet: the callback form and that with completion queues.
#ifndef VERBENA_RPC_COMPILER_STREAMING_METHOD_PRINTER_H_
#define VERBENA_RPC_COMPILER_STREAMING_METHOD_PRINTER_H_

#include <map>
#include <string>

#include "rpc/compiler/method_printer.h"

namespace rpc::compiler {

class StreamingMethodPrinter final : public MethodPrinter {
 public:
  // REQUIRES: not kUnary.
  explicit StreamingMethodPrinter(MethodKind kind) : kind_(kind) {}

  void PrintStubInterface(const MethodModel& method,
                          Printer& printer) const override;
  void PrintStubInterfaceRaw(const MethodModel& method,
                             Printer& printer) const override;
  void PrintAsyncInterface(const MethodModel&, Printer&) const override {}
  void PrintStubDeclaration(const MethodModel& method,
                            Printer& printer) const override;
  void PrintStubRaw(const MethodModel& method, Printer& printer) const override;
  void PrintAsyncDeclaration(const MethodModel&, Printer&) const override {}
  void PrintServiceDeclaration(const MethodModel& method,
                               Printer& printer) const override;
  bool HasCallbackClass() const override { return false; }
  void PrintCallbackClass(const MethodModel&, Printer&) const override {}
  void PrintStubDefinitions(const std::string& service_class,
                            const MethodModel& method,
                            Printer& printer) const override;
  void PrintRegistration(const MethodModel& method,
                         Printer& printer) const override;
  void PrintServiceDefinition(const std::string& service_class,
                              const MethodModel& method,
                              Printer& printer) const override;
  const char* rpc_type() const override;

 private:
  using Variables = std::map<std::string, std::string>;
  Variables VariablesOf(const MethodModel& method) const;

  const MethodKind kind_;
};

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_STREAMING_METHOD_PRINTER_H_
