// WithCoroutineMethod_X: a method's calls go to a coroutine. See
// method_class.h.
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_COMPILER_COROUTINE_METHOD_PRINTER_H_
#define VERBENA_RPC_COMPILER_COROUTINE_METHOD_PRINTER_H_

#include <optional>

#include "rpc/compiler/method_class.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// Every method has one.
std::optional<MethodClass> CoroutineMethodClass(const MethodModel& method);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_COROUTINE_METHOD_PRINTER_H_
