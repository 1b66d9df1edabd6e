// The C++ names of generated code: which identifiers a service and its methods
// get, and why some differ from what the .proto file says.
//
// Messages keep the names that protoc's own C++ generator gives them. Services
// and methods keep their names as they are, except where C++ or the shape of
// the generated classes leaves no choice: those get an underscore, as protoc
// does with fields. A call's path on the wire is never changed.
//
//   rpc Get(...)     ->  stub->Get(...)       "/pkg.Service/Get"
//   rpc delete(...)  ->  stub->delete_(...)   "/pkg.Service/delete"
//   rpc async(...)   ->  stub->async_(...)    "/pkg.Service/async"
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_COMPILER_NAMES_H_
#define VERBENA_RPC_COMPILER_NAMES_H_

#include <string>

namespace rpc::compiler {

// True for what C++20 reserves: keywords, alternative operators ("and"), and
// the macros of the C library that no program can do without ("NULL").
bool IsReservedByCpp(const std::string& name);

// The class that stands for a service, without its namespace.
std::string ServiceClassName(const std::string& service);

// The class that mocks a service's stub. `service_class` is ServiceClassName's.
std::string MockClassName(const std::string& service_class);

// The member functions that stand for a method, in the stubs and in the service
// classes alike.
std::string MethodFunctionName(const std::string& method);

// The include guard of the header generated from `proto_file`, a path such as
// "examples/kv/kv.proto". Different paths never get the same guard.
std::string IncludeGuard(const std::string& proto_file);

// That of the header with the mocks. No other header has it.
std::string MockIncludeGuard(const std::string& proto_file);

// The guard of what is generated for a message's fields, by its name,
// "pkg.Request". No header has it.
std::string FieldsGuard(const std::string& message);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_NAMES_H_
