#include "tests/compiler/memory_generator.h"

#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/compiler/plugin.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <utility>

#include "rpc/compiler/generator.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::FileDescriptor;
using ::google::protobuf::compiler::CodeGeneratorRequest;
using ::google::protobuf::compiler::CodeGeneratorResponse;

// Files in memory, as protobuf's parser wants them.
class MemorySourceTree : public google::protobuf::compiler::SourceTree {
 public:
  explicit MemorySourceTree(std::map<std::string, std::string> files)
      : files_(std::move(files)) {}

  google::protobuf::io::ZeroCopyInputStream* Open(
      const std::string& name) override {
    const auto file = files_.find(name);
    if (file == files_.end()) return nullptr;
    return new google::protobuf::io::ArrayInputStream(
        file->second.data(), static_cast<int>(file->second.size()));
  }

 private:
  const std::map<std::string, std::string> files_;
};

class FailOnError : public google::protobuf::compiler::MultiFileErrorCollector {
 public:
  void AddError(const std::string& file, int line, int /*column*/,
                const std::string& message) override {
    ADD_FAILURE() << file << ":" << line + 1 << ": " << message;
  }
};

// Adds `file` after all that it imports, with the source's places and comments,
// as protoc does.
void AddToRequest(const FileDescriptor& file, CodeGeneratorRequest& request) {
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddToRequest(*file.dependency(i), request);
  }
  for (const auto& present : request.proto_file()) {
    if (present.name() == file.name()) return;
  }
  auto& proto = *request.add_proto_file();
  file.CopyTo(&proto);
  file.CopyJsonNameTo(&proto);
  file.CopySourceCodeInfoTo(&proto);
}

}  // namespace

CodeGeneratorResponse Generate(std::map<std::string, std::string> files,
                               const std::string& name,
                               const std::string& parameter) {
  MemorySourceTree sources(std::move(files));
  FailOnError errors;
  google::protobuf::compiler::Importer importer(&sources, &errors);
  CodeGeneratorRequest request;
  CodeGeneratorResponse response;
  const FileDescriptor* file = importer.Import(name);
  if (file == nullptr) return response;  // the collector has said why
  AddToRequest(*file, request);
  request.add_file_to_generate(name);
  request.set_parameter(parameter);
  std::string error;
  EXPECT_TRUE(google::protobuf::compiler::GenerateCode(request, Generator(),
                                                       &response, &error))
      << error;
  return response;
}

CodeGeneratorResponse GenerateFrom(const std::string& text,
                                   const std::string& parameter) {
  return Generate({{"dir/foo.proto",
                    "syntax = \"proto3\";\n"
                    "package pkg;\n"
                    "message M {}\n" +
                        text}},
                  "dir/foo.proto", parameter);
}

std::string Content(const CodeGeneratorResponse& response,
                    const std::string& name) {
  for (const auto& file : response.file()) {
    if (file.name() == name) return file.content();
  }
  ADD_FAILURE() << "no file " << name << "; error: " << response.error();
  return "";
}

std::string HeaderFrom(const std::string& text) {
  return Content(GenerateFrom(text), "dir/foo.rpc.pb.h");
}

std::string SourceFrom(const std::string& text) {
  return Content(GenerateFrom(text), "dir/foo.rpc.pb.cc");
}

}  // namespace rpc::compiler
