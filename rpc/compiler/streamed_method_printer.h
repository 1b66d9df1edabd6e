// Class templates for a method that the server answers as if both sides
// streamed: its one request is read, and its one response written, when the
// server likes. See method_class.h.
//
//   WithStreamedUnaryMethod_X   for unary methods
//   WithSplitStreamingMethod_X  for those whose server streams
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_COMPILER_STREAMED_METHOD_PRINTER_H_
#define VERBENA_RPC_COMPILER_STREAMED_METHOD_PRINTER_H_

#include <optional>

#include "rpc/compiler/method_class.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// Methods of other kinds have none.
std::optional<MethodClass> StreamedUnaryMethodClass(const MethodModel& method);
std::optional<MethodClass> SplitStreamingMethodClass(const MethodModel& method);

// Whichever of the two the method has.
std::optional<MethodClass> StreamedMethodClass(const MethodModel& method);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_STREAMED_METHOD_PRINTER_H_
