#include "rpc/compiler/model.h"

#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/compiler/cpp/names.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "rpc/compiler/message_fields.h"
#include "rpc/compiler/names.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FileDescriptor;
using ::google::protobuf::MethodDescriptor;
using ::google::protobuf::ServiceDescriptor;
using ::google::protobuf::SourceLocation;
using ::google::protobuf::compiler::cpp::QualifiedClassName;
using ::google::protobuf::compiler::cpp::StripProto;

// "pkg.Service (line 7)", for what the .proto file's author reads. Without the
// line where the descriptor does not know it.
template <typename Descriptor>
std::string NameAndLine(const Descriptor& descriptor) {
  SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) return descriptor.full_name();
  return absl::StrCat(descriptor.full_name(), " (line ",
                      location.start_line + 1, ")");
}

MethodKind KindOf(const MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? MethodKind::kBidiStreaming
                                     : MethodKind::kClientStreaming;
  }
  return method.server_streaming() ? MethodKind::kServerStreaming
                                   : MethodKind::kUnary;
}

MethodModel BuildMethod(const MethodDescriptor& method) {
  MethodModel model;
  model.kind = KindOf(method);
  model.index = method.index();
  model.function = MethodFunctionName(method.name());
  model.path =
      absl::StrCat("/", method.service()->full_name(), "/", method.name());
  model.request_type = QualifiedClassName(method.input_type());
  model.response_type = QualifiedClassName(method.output_type());
  model.deprecated = method.options().deprecated();
  model.comments = CommentsOf(method);
  return model;
}

ServiceModel BuildService(const ServiceDescriptor& service) {
  ServiceModel model;
  model.class_name = ServiceClassName(service.name());
  model.mock_name = MockClassName(model.class_name);
  model.full_name = service.full_name();
  model.deprecated = service.options().deprecated();
  model.comments = CommentsOf(service);
  for (int i = 0; i < service.method_count(); ++i) {
    model.methods.push_back(BuildMethod(*service.method(i)));
  }
  return model;
}

// Methods whose names became one by an added underscore.
void FindSameFunctions(const ServiceDescriptor& service,
                       std::vector<std::string>& problems) {
  std::set<std::string> functions;
  for (int i = 0; i < service.method_count(); ++i) {
    const MethodDescriptor& method = *service.method(i);
    const std::string function = MethodFunctionName(method.name());
    if (functions.insert(function).second) continue;
    problems.push_back(absl::StrCat(NameAndLine(method),
                                    ": another method is named ", function,
                                    " in C++ already; rename one of them"));
  }
}

// The messages among the parameters of the functions that make a call's object.
std::string CallParameters(const MethodDescriptor& method) {
  if (!method.client_streaming()) {
    return absl::StrCat("const ", method.input_type()->full_name(), "&");
  }
  if (method.server_streaming()) return "";
  return absl::StrCat(method.output_type()->full_name(), "*");
}

// A method XRaw beside X, where the stub's PrepareAsyncXRaw would be a function
// of both, with the same parameters.
void FindSameRawFunctions(const ServiceDescriptor& service,
                          std::vector<std::string>& problems) {
  std::map<std::string, const MethodDescriptor*> methods;
  for (int i = 0; i < service.method_count(); ++i) {
    const MethodDescriptor& method = *service.method(i);
    methods[MethodFunctionName(method.name())] = &method;
  }
  for (const auto& [function, method] : methods) {
    const auto raw = methods.find(function + "Raw");
    if (raw == methods.end() ||
        CallParameters(*method) != CallParameters(*raw->second)) {
      continue;
    }
    problems.push_back(absl::StrCat(NameAndLine(*raw->second), ": ", function,
                                    "Raw is in C++ a part of ", method->name(),
                                    ", with the same parameters; rename one of "
                                    "them"));
  }
}

// `class_name`, a class made for the service, is somebody else's in the file.
void FindTaken(const ServiceDescriptor& service, const Parameters& parameters,
               const std::string& class_name,
               std::vector<std::string>& problems) {
  const FileDescriptor& file = *service.file();
  // Messages are in another namespace where the services have one.
  const bool is_message = parameters.services_namespace.empty() &&
                          (file.FindMessageTypeByName(class_name) != nullptr ||
                           file.FindEnumTypeByName(class_name) != nullptr);
  if (!is_message && file.FindServiceByName(class_name) == nullptr) return;
  problems.push_back(absl::StrCat(NameAndLine(service), ": ", class_name,
                                  ", its class in C++, exists already; rename "
                                  "one of them"));
}

// A class that protoc's own output, or another service, has already.
void FindTakenClasses(const ServiceDescriptor& service,
                      const Parameters& parameters,
                      std::vector<std::string>& problems) {
  if (parameters.services_namespace.empty() &&
      service.file()->options().cc_generic_services()) {
    problems.push_back(absl::StrCat(
        NameAndLine(service),
        ": option cc_generic_services makes protoc generate a class of the "
        "same name; remove the option, or generate with "
        "--rpc_opt=services_namespace=NAME"));
  }
  const std::string class_name = ServiceClassName(service.name());
  if (class_name != service.name()) {  // else protoc has checked it
    FindTaken(service, parameters, class_name, problems);
  }
  if (parameters.generate_mock_code) {
    FindTaken(service, parameters, MockClassName(class_name), problems);
  }
}

absl::Status Check(const FileDescriptor& file, const Parameters& parameters) {
  std::vector<std::string> problems;
  for (int i = 0; i < file.service_count(); ++i) {
    const ServiceDescriptor& service = *file.service(i);
    FindSameFunctions(service, problems);
    FindSameRawFunctions(service, problems);
    FindTakenClasses(service, parameters, problems);
  }
  if (problems.empty()) return absl::OkStatus();
  // protoc puts the file's name in front of the first line.
  return absl::InvalidArgumentError(
      absl::StrJoin(problems, absl::StrCat("\n", file.name(), ": ")));
}

// Each once, however many methods have it.
std::vector<MessageModel> MessagesOf(const FileDescriptor& file) {
  std::vector<MessageModel> messages;
  std::set<const Descriptor*> seen;
  for (int i = 0; i < file.service_count(); ++i) {
    const ServiceDescriptor& service = *file.service(i);
    for (int j = 0; j < service.method_count(); ++j) {
      const MethodDescriptor& method = *service.method(j);
      for (const Descriptor* message :
           {method.input_type(), method.output_type()}) {
        if (!seen.insert(message).second) continue;
        auto model = BuildMessage(*message);
        if (model) messages.push_back(*std::move(model));
      }
    }
  }
  return messages;
}

std::vector<std::string> NamespacesOf(const FileDescriptor& file,
                                      const Parameters& parameters) {
  std::vector<std::string> namespaces =
      absl::StrSplit(file.package(), '.', absl::SkipEmpty());
  if (!parameters.services_namespace.empty()) {
    namespaces.push_back(parameters.services_namespace);
  }
  return namespaces;
}

}  // namespace

absl::StatusOr<FileModel> BuildFileModel(const FileDescriptor& file,
                                         const Parameters& parameters) {
  absl::Status status = Check(file, parameters);
  if (!status.ok()) return status;

  const std::string base = StripProto(file.name());
  FileModel model;
  model.proto_file = file.name();
  model.message_header = base + ".pb.h";
  model.service_header = base + ".rpc.pb.h";
  model.service_source = base + ".rpc.pb.cc";
  model.mock_header = base + "_mock.rpc.pb.h";
  model.include_guard = IncludeGuard(file.name());
  model.mock_include_guard = MockIncludeGuard(file.name());
  model.namespaces = NamespacesOf(file, parameters);
  model.messages = MessagesOf(file);
  for (int i = 0; i < file.service_count(); ++i) {
    model.services.push_back(BuildService(*file.service(i)));
  }
  model.comments = CommentsOf(file);
  return model;
}

}  // namespace rpc::compiler
