#include "rpc/compiler/raw_method_printer.h"

#include "rpc/compiler/async_method_printer.h"
#include "rpc/compiler/callback_method_printer.h"
#include "rpc/compiler/method_text.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

MethodModel WithByteBuffers(MethodModel method) {
  method.request_type = "::rpc::ByteBuffer";
  method.response_type = "::rpc::ByteBuffer";
  return method;
}

}  // namespace

std::optional<MethodClass> RawMethodClass(const MethodModel& method) {
  return QueuedMethodClass(WithByteBuffers(method), "Raw");
}

std::optional<MethodClass> RawCallbackMethodClass(const MethodModel& method) {
  return ReactorMethodClass(WithByteBuffers(method), "RawCallback");
}

std::optional<MethodClass> GenericMethodClass(const MethodModel& method) {
  return MethodClass{
      .form = "Generic",
      .constructor = Fill(VariablesOf(method),
                          "::rpc::Service::MarkMethodGeneric($index$);"),
      .functions = ""};
}

}  // namespace rpc::compiler
