#include "rpc/compiler/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rpc::compiler {
namespace {

// Lists of words, a blank around each.
constexpr char kReservedByCpp[] =
    " EOF NULL alignas alignof and and_eq asm assert auto bitand bitor bool "
    "break case catch char char16_t char32_t char8_t class co_await "
    "co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast "
    "else enum errno explicit export extern false float for friend goto if "
    "inline int long mutable namespace new noexcept not not_eq nullptr "
    "operator or or_eq private protected public register reinterpret_cast "
    "requires return short signed sizeof static static_assert static_cast "
    "stderr stdin stdout struct switch template this thread_local throw "
    "true try typedef typeid typename union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq ";

// What the class of a service declares itself. A class cannot have a member of
// its own name.
constexpr char kServiceMembers[] =
    " AsyncService CallbackService CoroutineService "
    "ExperimentalCallbackService NewStub Service SplitStreamedService "
    "StreamedService StreamedUnaryService Stub StubInterface "
    "service_full_name ";

// What the classes that hold a method's functions are called, and what else
// they declare, as parameters of templates, too.
constexpr char kMethodClassMembers[] =
    " BaseClass Service Stub StubInterface async async_interface async_stub_ "
    "channel_ coro coro_interface coro_stub_ experimental_async "
    "experimental_async_interface stub_ ";

bool Lists(const char* words, const std::string& name) {
  return absl::StrContains(words, absl::StrCat(" ", name, " "));
}

// The stub describes its methods in members "rpcmethod_INDEX_". One underscore
// more, and such a name is none of them.
bool LooksLikeMethodMember(const std::string& name) {
  return absl::StartsWith(name, "rpcmethod_") && absl::EndsWith(name, "_");
}

std::string GuardOf(const std::string& prefix, const std::string& proto_file) {
  // Everything but letters and digits becomes its hexadecimal code, the
  // underscore too: so no two paths meet, and no "__", which C++ reserves, can
  // come out. The slash in front keeps the prefix apart.
  std::string guard = prefix;
  for (const unsigned char c : "/" + proto_file) {
    if (absl::ascii_isalnum(c)) {
      guard += static_cast<char>(c);
    } else {
      absl::StrAppend(&guard, "_", absl::Hex(c, absl::kZeroPad2));
    }
  }
  return guard + "_H_";
}

}  // namespace

bool IsReservedByCpp(const std::string& name) {
  return Lists(kReservedByCpp, name);
}

std::string ServiceClassName(const std::string& service) {
  const bool taken =
      IsReservedByCpp(service) || Lists(kServiceMembers, service);
  return service + (taken ? "_" : "");
}

std::string MockClassName(const std::string& service_class) {
  return absl::StrCat("Mock", service_class, "Stub");
}

std::string MethodFunctionName(const std::string& method) {
  const bool taken = IsReservedByCpp(method) ||
                     Lists(kMethodClassMembers, method) ||
                     LooksLikeMethodMember(method);
  return method + (taken ? "_" : "");
}

std::string IncludeGuard(const std::string& proto_file) {
  return GuardOf("VERBENA_RPC", proto_file);
}

std::string MockIncludeGuard(const std::string& proto_file) {
  return GuardOf("VERBENA_RPC_MOCK", proto_file);
}

std::string FieldsGuard(const std::string& message) {
  return GuardOf("VERBENA_RPC_FIELDS", message);
}

}  // namespace rpc::compiler
