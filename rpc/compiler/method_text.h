// What the text that is generated for a method is put together from: its names
// as variables, parameter lists, and the words that depend on its kind.
//
//   Signature signature =
//       ContextAndMessages("::rpc::CallbackServerContext*", method, "*");
//   PrintText(VariablesOf(method, signature), R"(virtual void $Method$(
//       $parameters$);
//   )", printer);
//
// Thread rule: values and pure functions.
#ifndef VERBENA_RPC_COMPILER_METHOD_TEXT_H_
#define VERBENA_RPC_COMPILER_METHOD_TEXT_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "rpc/compiler/model.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {

// A function's parameters, in the ways in which code writes them: each on a
// line of its own where it has a type.
class Signature {
 public:
  struct Parameter {
    std::string type;
    std::string name;
  };

  Signature(std::initializer_list<Parameter> parameters)
      : parameters_(parameters) {}

  void Add(Parameter parameter) { parameters_.push_back(std::move(parameter)); }

  std::string Declared() const;   // "A* a,\nB* b"
  std::string Unnamed() const;    // "A* /*a*/,\nB* /*b*/"
  std::string Arguments() const;  // "a, b"

 private:
  std::vector<Parameter> parameters_;
};

// How many messages the sides send: any number, or one.
bool ClientStreams(MethodKind kind);
bool ServerStreams(MethodKind kind);

// What most functions of a method begin with: a context, and of the messages
// those that are not streamed. The request is passed as `request_reference`
// says,
// "*" or "&".
Signature ContextAndMessages(std::string context_type,
                             const MethodModel& method,
                             absl::string_view request_reference);

// Four words, or longer texts; that of a kind.
struct KindWords {
  absl::string_view unary;
  absl::string_view client_streaming;
  absl::string_view server_streaming;
  absl::string_view bidi_streaming;
};
std::string WordOf(MethodKind kind, const KindWords& words);

// The method's one, with VariablesOf(method) in its gaps.
std::string TextOf(const MethodModel& method, const KindWords& texts);

// Method, Request and Response (types), path, index, rpc_type (the kind as
// rpc::internal::RpcMethod::RpcType spells it), deprecated (an attribute with a
// blank behind it, or nothing).
Variables VariablesOf(const MethodModel& method);
// And parameters, unnamed_parameters, arguments.
Variables VariablesOf(const MethodModel& method, const Signature& signature);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_METHOD_TEXT_H_
