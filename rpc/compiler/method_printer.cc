#include "rpc/compiler/method_printer.h"

#include <cstdlib>

#include "rpc/compiler/streaming_method_printer.h"
#include "rpc/compiler/unary_method_printer.h"

namespace rpc::compiler {

const MethodPrinter& PrinterOf(MethodKind kind) {
  static const UnaryMethodPrinter unary;
  static const StreamingMethodPrinter client_streaming(
      MethodKind::kClientStreaming);
  static const StreamingMethodPrinter server_streaming(
      MethodKind::kServerStreaming);
  static const StreamingMethodPrinter bidi_streaming(
      MethodKind::kBidiStreaming);
  switch (kind) {
    case MethodKind::kUnary:
      return unary;
    case MethodKind::kClientStreaming:
      return client_streaming;
    case MethodKind::kServerStreaming:
      return server_streaming;
    case MethodKind::kBidiStreaming:
      return bidi_streaming;
  }
  std::abort();
}

}  // namespace rpc::compiler
