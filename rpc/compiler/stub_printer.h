// The client's classes of a service: StubInterface and Stub, each with a class
// for calls that do not block inside. See service_printer.h.
//
// Thread rule: pure functions; a Printer belongs to one thread.
#ifndef VERBENA_RPC_COMPILER_STUB_PRINTER_H_
#define VERBENA_RPC_COMPILER_STUB_PRINTER_H_

#include "google/protobuf/io/printer.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// For the header, inside the service's class.
void PrintStubInterface(const ServiceModel& service,
                        google::protobuf::io::Printer& printer);
// With NewStub.
void PrintStub(const ServiceModel& service,
               google::protobuf::io::Printer& printer);

// For the source file.
void PrintStubDefinitions(const ServiceModel& service,
                          google::protobuf::io::Printer& printer);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_STUB_PRINTER_H_
