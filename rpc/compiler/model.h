// What a .proto file's services are, in C++ terms: every name chosen, every
// check made. The printers only have to write it down.
//
//   absl::StatusOr<FileModel> file = BuildFileModel(descriptor, parameters);
//   if (!file.ok()) ...  // tells the .proto file's author what to change
//
// Thread rule: values, built by pure functions.
#ifndef VERBENA_RPC_COMPILER_MODEL_H_
#define VERBENA_RPC_COMPILER_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/compiler/comments.h"
#include "rpc/compiler/parameters.h"

namespace google::protobuf {
class FileDescriptor;
}  // namespace google::protobuf

namespace rpc::compiler {

// How many messages go each way.
enum class MethodKind {
  kUnary,
  kClientStreaming,
  kServerStreaming,
  kBidiStreaming,
};

struct MethodModel {
  MethodKind kind = MethodKind::kUnary;
  int index = 0;              // among the service's methods
  std::string function;       // the member functions' name
  std::string path;           // "/pkg.Service/Method", as on the wire
  std::string request_type;   // "::pkg::Request"
  std::string response_type;  // "::pkg::Response"
  bool deprecated = false;
  Comments comments;
};

struct ServiceModel {
  std::string class_name;  // without namespace
  std::string mock_name;   // the class of its stub's mock
  std::string full_name;   // "pkg.Service"
  bool deprecated = false;
  std::vector<MethodModel> methods;
  Comments comments;
};

// A field that is one number, text, or bytes.
struct FieldModel {
  int number = 0;
  uint32_t tag = 0;           // what it begins with on the wire
  std::string name;           // its functions' in C++
  std::string function;       // of FieldReader and FieldWriter: "Sint32"
  std::string enum_type;      // "::pkg::Color"; or empty
  bool has_presence = false;  // there is a has_NAME
  bool is_text = false;       // or bytes
};

// A message of such fields only.
struct MessageModel {
  std::string type;                // "::pkg::Request"
  std::string guard;               // of what is generated for it
  bool deprecated = false;         // it, or what it has
  std::vector<FieldModel> fields;  // by number
};

struct FileModel {
  std::string proto_file;      // "dir/foo.proto"
  std::string message_header;  // "dir/foo.pb.h"
  std::string service_header;  // "dir/foo.rpc.pb.h"
  std::string service_source;  // "dir/foo.rpc.pb.cc"
  std::string mock_header;     // "dir/foo_mock.rpc.pb.h"
  std::string include_guard;
  std::string mock_include_guard;
  std::vector<std::string> namespaces;  // outermost first
  std::vector<MessageModel> messages;   // of the services' methods
  std::vector<ServiceModel> services;
  Comments comments;  // of the file itself
};

// INVALID_ARGUMENT: what stands in the way, one line of text for each service
// or method concerned, with its line in the file.
absl::StatusOr<FileModel> BuildFileModel(
    const google::protobuf::FileDescriptor& file, const Parameters& parameters);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_MODEL_H_
