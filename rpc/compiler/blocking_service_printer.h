// The class Service of a service, which a server implements with functions that
// return when the call is done. See service_printer.h.
//
// Thread rule: pure functions; a Printer belongs to one thread.
#ifndef VERBENA_RPC_COMPILER_BLOCKING_SERVICE_PRINTER_H_
#define VERBENA_RPC_COMPILER_BLOCKING_SERVICE_PRINTER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/printer.h"
#include "rpc/compiler/method_text.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// For the header, inside the service's class.
void PrintBlockingService(const ServiceModel& service,
                          google::protobuf::io::Printer& printer);

// For the source file.
void PrintBlockingServiceDefinitions(const ServiceModel& service,
                                     google::protobuf::io::Printer& printer);

// What Service's function for a method takes.
Signature BlockingSignature(const MethodModel& method);
// The same with another context, and with other classes for the messages that
// are streamed: "::rpc::Server" begins the names of Service's.
Signature HandlerSignature(std::string context_type,
                           absl::string_view stream_prefix,
                           const MethodModel& method);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_BLOCKING_SERVICE_PRINTER_H_
