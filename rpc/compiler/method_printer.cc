#include "rpc/compiler/method_printer.h"

#include <cstdlib>

#include "rpc/compiler/unary_method_printer.h"

namespace rpc::compiler {

const MethodPrinter& PrinterOf(MethodKind kind) {
  static const UnaryMethodPrinter unary;
  switch (kind) {
    case MethodKind::kUnary:
      return unary;
    case MethodKind::kClientStreaming:
    case MethodKind::kServerStreaming:
    case MethodKind::kBidiStreaming:
      break;  // refused by BuildFileModel
  }
  std::abort();
}

}  // namespace rpc::compiler
