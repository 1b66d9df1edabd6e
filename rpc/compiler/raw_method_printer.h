// Class templates for a method whose messages the server takes and gives as
// bytes, unparsed. See method_class.h.
//
//   WithRawMethod_X          out of a completion queue
//   WithRawCallbackMethod_X  by a function that returns a reactor
//   WithGenericMethod_X      by the server's generic service, which has no
//   methods
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_COMPILER_RAW_METHOD_PRINTER_H_
#define VERBENA_RPC_COMPILER_RAW_METHOD_PRINTER_H_

#include <optional>

#include "rpc/compiler/method_class.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// Every method has each.
std::optional<MethodClass> RawMethodClass(const MethodModel& method);
std::optional<MethodClass> RawCallbackMethodClass(const MethodModel& method);
std::optional<MethodClass> GenericMethodClass(const MethodModel& method);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_RAW_METHOD_PRINTER_H_
