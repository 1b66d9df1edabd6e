// The functions that a client calls a method by: what they are named, take and
// return, and what they do. The printers write them down wherever they appear.
//
//   for (const StubFunction& function :
//        StubFunctions(method, StubClass::kInterface)) {
//     ...  // function.virtual_type() and function.virtual_name()
//   }
//
// Thread rule: values and pure functions.
#ifndef VERBENA_RPC_COMPILER_STUB_FUNCTIONS_H_
#define VERBENA_RPC_COMPILER_STUB_FUNCTIONS_H_

#include <string>
#include <vector>

#include "rpc/compiler/method_text.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// Each declares the same functions, the one for a mock or the other to
// implement. What they return differs.
enum class StubClass { kInterface, kStub };

struct StubFunction {
  std::string name;
  std::string type;  // what it returns
  Signature signature;
  std::string body;  // of Stub's; lines without a break at the end
  // It makes the object of a call, which becomes its caller's. The virtual
  // function is a private one then, "Raw" at the end of its name, that returns
  // a pointer; the public one puts that into a unique_ptr.
  bool makes_call = false;

  std::string virtual_name() const { return name + (makes_call ? "Raw" : ""); }
  std::string virtual_type() const { return type + (makes_call ? "*" : ""); }
};

// Of StubInterface and Stub.
std::vector<StubFunction> StubFunctions(const MethodModel& method,
                                        StubClass stub_class);

// Of their async_interface and async. None makes a call's object: the caller
// has one, or needs none.
std::vector<StubFunction> AsyncFunctions(const MethodModel& method);

// Of their coro_interface and coro. What they return is for coroutines.
std::vector<StubFunction> CoroFunctions(const MethodModel& method);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_STUB_FUNCTIONS_H_
