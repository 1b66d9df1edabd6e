// The classes generated for a service, and around them the two files.
//
//   class Foo final {
//     class StubInterface      what a client calls; users may mock it
//     class Stub               the same over a channel
//     static NewStub()
//     class Service            what a server implements, one thread a call
//     class With...Method_X<Base>
//                              Base with another form of one method
//     typedef ... AsyncService, CallbackService, ...
//                              Service with another form of every method
//   };
//
// Thread rule: pure functions; a Printer belongs to one thread.
#ifndef VERBENA_RPC_COMPILER_SERVICE_PRINTER_H_
#define VERBENA_RPC_COMPILER_SERVICE_PRINTER_H_

#include "google/protobuf/io/printer.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// The class, for the header. Indentation is left as it was found.
void PrintServiceClass(const ServiceModel& service,
                       google::protobuf::io::Printer& printer);

// Its members' definitions, for the source file.
void PrintServiceDefinitions(const ServiceModel& service,
                             google::protobuf::io::Printer& printer);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_SERVICE_PRINTER_H_
