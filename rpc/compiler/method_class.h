// Class templates that replace one method of a service by another form of it:
// WithCallbackMethod_X and its like. A family is a function that says what the
// class for a method holds; this prints it.
//
//   std::optional<MethodClass> CallbackClass(const MethodModel& method);
//
//   PrintMethodClasses(service, &CallbackClass, printer);
//   PrintNestedService("CallbackService", service, &CallbackClass, printer);
//
// Thread rule: values and pure functions; a Printer belongs to one thread.
#ifndef VERBENA_RPC_COMPILER_METHOD_CLASS_H_
#define VERBENA_RPC_COMPILER_METHOD_CLASS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/printer.h"
#include "rpc/compiler/method_text.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

struct MethodClass {
  std::string form;         // "Callback": WithCallbackMethod_X
  std::string constructor;  // its statements
  std::string functions;    // the other form's, public; "" for none
};

// A statement for such a constructor that gives the method a handler:
// "Callback" for MarkMethodCallback, a class of rpc::internal, and a function
// of this, with what it takes.
std::string MarkWithHandler(const MethodModel& method, absl::string_view form,
                            absl::string_view handler,
                            absl::string_view function,
                            const Signature& signature);

// nullopt: the family has none for such a method.
using MethodClassFamily = std::optional<MethodClass> (*)(const MethodModel&);

// One class template for each method, with an empty line in front.
void PrintMethodClasses(const ServiceModel& service, MethodClassFamily family,
                        google::protobuf::io::Printer& printer);

// A typedef for Service with all of those around it, the first method's the
// outermost; with an empty line in front, too.
void PrintNestedService(absl::string_view name, const ServiceModel& service,
                        MethodClassFamily family,
                        google::protobuf::io::Printer& printer);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_METHOD_CLASS_H_
