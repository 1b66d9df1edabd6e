#include "rpc/compiler/service_printer.h"

#include "rpc/compiler/async_method_printer.h"
#include "rpc/compiler/blocking_service_printer.h"
#include "rpc/compiler/callback_method_printer.h"
#include "rpc/compiler/comments.h"
#include "rpc/compiler/coroutine_method_printer.h"
#include "rpc/compiler/method_class.h"
#include "rpc/compiler/raw_method_printer.h"
#include "rpc/compiler/streamed_method_printer.h"
#include "rpc/compiler/stub_printer.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::io::Printer;

// The other forms of Service.
void PrintMethodClasses(const ServiceModel& service, Printer& printer) {
  PrintMethodClasses(service, &AsyncMethodClass, printer);
  PrintNestedService("AsyncService", service, &AsyncMethodClass, printer);
  PrintMethodClasses(service, &CallbackMethodClass, printer);
  PrintNestedService("CallbackService", service, &CallbackMethodClass, printer);
  printer.Print("typedef CallbackService ExperimentalCallbackService;\n");
  PrintMethodClasses(service, &CoroutineMethodClass, printer);
  PrintNestedService("CoroutineService", service, &CoroutineMethodClass,
                     printer);
  PrintMethodClasses(service, &GenericMethodClass, printer);
  PrintMethodClasses(service, &RawMethodClass, printer);
  PrintMethodClasses(service, &RawCallbackMethodClass, printer);
  PrintMethodClasses(service, &StreamedMethodClass, printer);
  PrintNestedService("StreamedUnaryService", service, &StreamedUnaryMethodClass,
                     printer);
  PrintNestedService("SplitStreamedService", service,
                     &SplitStreamingMethodClass, printer);
  PrintNestedService("StreamedService", service, &StreamedMethodClass, printer);
}

}  // namespace

void PrintServiceClass(const ServiceModel& service, Printer& printer) {
  PrintComment(service.comments.leading, printer);
  printer.Print(R"(class $Service$ final {
 public:
  static constexpr char const* service_full_name() {
    return "$full_name$";
  }

)",
                "Service", service.class_name, "full_name", service.full_name);
  printer.Indent();
  PrintComment(service.comments.trailing, printer);
  PrintStubInterface(service, printer);
  printer.Print("\n");
  PrintStub(service, printer);
  printer.Print("\n");
  PrintBlockingService(service, printer);
  PrintMethodClasses(service, printer);
  printer.Outdent();
  printer.Print("};\n");
}

void PrintServiceDefinitions(const ServiceModel& service, Printer& printer) {
  PrintStubDefinitions(service, printer);
  printer.Print("\n");
  PrintBlockingServiceDefinitions(service, printer);
}

}  // namespace rpc::compiler
