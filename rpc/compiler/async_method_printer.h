// WithAsyncMethod_X: a method's calls come out of a completion queue. The
// server asks for each with RequestX. See method_class.h.
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_COMPILER_ASYNC_METHOD_PRINTER_H_
#define VERBENA_RPC_COMPILER_ASYNC_METHOD_PRINTER_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "rpc/compiler/method_class.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// Every method has one.
std::optional<MethodClass> AsyncMethodClass(const MethodModel& method);

// The same under another name: `form` in the place of "Async".
MethodClass QueuedMethodClass(const MethodModel& method,
                              absl::string_view form);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_ASYNC_METHOD_PRINTER_H_
