// What generated code says about one method: a piece for each place in the
// generated classes where methods appear. There is one implementation for each
// kind of method.
//
//   const MethodPrinter& pieces = PrinterOf(method.kind);
//   pieces.PrintStubDeclaration(method, printer);
//
// Every piece is whole lines, indented as the printer says, and leaves the
// indentation as it found it. Comments and the declaration's surroundings are
// the caller's.
//
// Thread rule: implementations have no state.
#ifndef VERBENA_RPC_COMPILER_METHOD_PRINTER_H_
#define VERBENA_RPC_COMPILER_METHOD_PRINTER_H_

#include <string>

#include "google/protobuf/io/printer.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

class MethodPrinter {
 public:
  using Printer = ::google::protobuf::io::Printer;

  virtual ~MethodPrinter() = default;

  // Header, client. Pure virtual functions of StubInterface and of its
  // async_interface; their overrides in Stub and in Stub::async.
  virtual void PrintStubInterface(const MethodModel& method,
                                  Printer& printer) const = 0;
  // Private virtual functions behind those of StubInterface, and their
  // overrides in Stub: what a mock implements. Default: there are none.
  virtual void PrintStubInterfaceRaw(const MethodModel&, Printer&) const {}
  virtual void PrintStubRaw(const MethodModel&, Printer&) const {}
  virtual void PrintAsyncInterface(const MethodModel& method,
                                   Printer& printer) const = 0;
  virtual void PrintStubDeclaration(const MethodModel& method,
                                    Printer& printer) const = 0;
  virtual void PrintAsyncDeclaration(const MethodModel& method,
                                     Printer& printer) const = 0;

  // Header, server. The virtual function of Service, and the class template
  // WithCallbackMethod_X that replaces it by the callback form.
  virtual void PrintServiceDeclaration(const MethodModel& method,
                                       Printer& printer) const = 0;
  virtual bool HasCallbackClass() const { return true; }
  virtual void PrintCallbackClass(const MethodModel& method,
                                  Printer& printer) const = 0;

  // Source. `service_class` is the class that holds Stub and Service.
  virtual void PrintStubDefinitions(const std::string& service_class,
                                    const MethodModel& method,
                                    Printer& printer) const = 0;
  // A statement in Service's constructor.
  virtual void PrintRegistration(const MethodModel& method,
                                 Printer& printer) const = 0;
  virtual void PrintServiceDefinition(const std::string& service_class,
                                      const MethodModel& method,
                                      Printer& printer) const = 0;

  // The kind's name as rpc::internal::RpcMethod::RpcType spells it.
  virtual const char* rpc_type() const = 0;
};

const MethodPrinter& PrinterOf(MethodKind kind);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_METHOD_PRINTER_H_
