#include "rpc/compiler/method_class.h"

#include "absl/strings/str_cat.h"
#include "rpc/compiler/blocking_service_printer.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::io::Printer;

std::string NameOf(const MethodClass& method_class, const MethodModel& method) {
  return absl::StrCat("With", method_class.form, "Method_", method.function);
}

}  // namespace

std::string MarkWithHandler(const MethodModel& method, absl::string_view form,
                            absl::string_view handler,
                            absl::string_view function,
                            const Signature& signature) {
  Variables variables = VariablesOf(method, signature);
  variables["form"] = std::string(form);
  variables["Handler"] = std::string(handler);
  variables["function"] = std::string(function);
  return Fill(variables, R"(::rpc::Service::MarkMethod$form$(
    $index$,
    new ::rpc::internal::$Handler$<
        $Request$,
        $Response$>(
        [this]($parameters$) {
          return this->$function$($arguments$);
        }));)");
}

void PrintMethodClasses(const ServiceModel& service, MethodClassFamily family,
                        Printer& printer) {
  for (const MethodModel& method : service.methods) {
    const std::optional<MethodClass> method_class = family(method);
    if (!method_class.has_value()) continue;
    Variables variables = VariablesOf(method, BlockingSignature(method));
    variables["Name"] = NameOf(*method_class, method);
    variables["constructor"] = method_class->constructor;
    variables["functions"] = method_class->functions;
    PrintText(variables, R"(
template <class BaseClass>
class $Name$ : public BaseClass {
  static_assert(::std::is_base_of<Service, BaseClass>::value,
                "BaseClass must be Service or derive from it");

 public:
  $Name$() {
    $constructor$
  }

  // Replaced: the runtime does not call it.
  ::rpc::Status $Method$(
      $unnamed_parameters$) override {
    ::std::abort();
  }
  $functions$
};
)",
              printer);
  }
}

void PrintNestedService(absl::string_view name, const ServiceModel& service,
                        MethodClassFamily family, Printer& printer) {
  std::string type = "Service";
  for (auto method = service.methods.rbegin(); method != service.methods.rend();
       ++method) {
    const std::optional<MethodClass> method_class = family(*method);
    if (!method_class.has_value()) continue;
    type = absl::StrCat(NameOf(*method_class, *method), "<\n", type, ">");
  }
  PrintText({{"type", type}, {"name", std::string(name)}},
            R"(
typedef
    $type$
    $name$;
)",
            printer);
}

}  // namespace rpc::compiler
