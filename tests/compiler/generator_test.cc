// Goal: what the plugin accepts and what it refuses, what its messages tell a
// .proto file's author, and which of the file's text reaches the output.
// Method: .proto text in memory, parsed by protobuf's own parser, through the
// plugin's protocol (CodeGeneratorRequest to CodeGeneratorResponse). That the
// output compiles and works is shown by generated_code_test.
#include "rpc/compiler/generator.h"

#include <gmock/gmock.h>
#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/compiler/plugin.h>
#include <google/protobuf/compiler/plugin.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace rpc::compiler {
namespace {

using ::google::protobuf::FileDescriptor;
using ::google::protobuf::compiler::CodeGeneratorRequest;
using ::google::protobuf::compiler::CodeGeneratorResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

// Runs the plugin for `name`, one of `files`.
CodeGeneratorResponse Generate(std::map<std::string, std::string> files,
                               const std::string& name,
                               const std::string& parameter = "") {
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

// The same for one file with some text in the place of a service.
CodeGeneratorResponse GenerateFrom(const std::string& text,
                                   const std::string& parameter = "") {
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

TEST(GeneratorTest, MakesAHeaderAndASourceBesideThoseOfProtoc) {
  const CodeGeneratorResponse response =
      GenerateFrom("service S { rpc Get(M) returns (M); }");
  EXPECT_THAT(response.error(), IsEmpty());
  ASSERT_EQ(response.file_size(), 2);
  EXPECT_THAT(Content(response, "dir/foo.rpc.pb.h"),
              HasSubstr("#include \"dir/foo.pb.h\""));
  EXPECT_THAT(Content(response, "dir/foo.rpc.pb.cc"),
              HasSubstr("#include \"dir/foo.rpc.pb.h\""));
}

TEST(GeneratorTest, TellsProtocThatOptionalFieldsAreFine) {
  const CodeGeneratorResponse response =
      GenerateFrom("message O { optional int32 x = 1; }");
  EXPECT_TRUE(response.supported_features() &
              CodeGeneratorResponse::FEATURE_PROTO3_OPTIONAL);
}

TEST(GeneratorTest, FilesWithoutServicesGetOutputsToo) {
  const CodeGeneratorResponse response = GenerateFrom("");
  EXPECT_EQ(response.file_size(), 2);
  EXPECT_THAT(Content(response, "dir/foo.rpc.pb.h"), Not(HasSubstr("class ")));
}

TEST(GeneratorTest, PathsKeepTheNamesOfTheProtoFile) {
  const std::string source =
      SourceFrom("service class { rpc delete(M) returns (M); }");
  EXPECT_THAT(source, HasSubstr("\"/pkg.class/delete\""));
  EXPECT_THAT(source, HasSubstr("class_::Stub::delete_("));
}

TEST(GeneratorTest, FilesWithoutPackageHaveNoNamespace) {
  const CodeGeneratorResponse response =
      Generate({{"a.proto",
                 "syntax = \"proto3\"; message M {}\n"
                 "service S { rpc Get(M) returns (M); }"}},
               "a.proto");
  EXPECT_THAT(Content(response, "a.rpc.pb.h"), Not(HasSubstr("namespace")));
  EXPECT_THAT(Content(response, "a.rpc.pb.cc"), HasSubstr("\"/S/Get\""));
}

TEST(GeneratorTest, TakesMessagesOfOtherFilesAndOtherMessages) {
  const CodeGeneratorResponse response = Generate(
      {{"other.proto",
        "syntax = \"proto3\"; package other.one; message Outer { message "
        "Inner {} }"},
       {"a.proto",
        "syntax = \"proto3\"; package pkg; import \"other.proto\";\n"
        "service S { rpc Get(other.one.Outer.Inner) returns "
        "(other.one.Outer); }"}},
      "a.proto");
  EXPECT_THAT(Content(response, "a.rpc.pb.h"),
              AllOf(HasSubstr("const ::other::one::Outer_Inner& request"),
                    HasSubstr("::other::one::Outer* response")));
}

// That they work: tests/e2e/streams_test.
TEST(GeneratorTest, StreamsAreOfTheirKinds) {
  const CodeGeneratorResponse response = GenerateFrom(
      "service S {\n"
      "  rpc Get(M) returns (M);\n"
      "  rpc Watch(M) returns (stream N);\n"
      "  rpc Load(stream M) returns (N);\n"
      "  rpc Chat(stream M) returns (stream N);\n"
      "}\n"
      "message N {}\n");
  EXPECT_EQ(response.error(), "");
  EXPECT_THAT(
      Content(response, "dir/foo.rpc.pb.h"),
      AllOf(HasSubstr("::rpc::ClientReader<::pkg::N>"),
            HasSubstr("virtual ::rpc::ClientReaderInterface<::pkg::N>*"),
            HasSubstr("::rpc::ServerWriter<::pkg::N>* writer"),
            HasSubstr("::rpc::ClientWriter<::pkg::M>"),
            HasSubstr("::rpc::ServerReader<::pkg::M>* reader, ::pkg::N*"),
            HasSubstr("::rpc::ClientReaderWriter<::pkg::M, ::pkg::N>"),
            HasSubstr("::rpc::ServerReaderWriter<::pkg::N, ::pkg::M>* stream"),
            HasSubstr("WithCallbackMethod_Get"),
            Not(HasSubstr("WithCallbackMethod_Watch"))));
  EXPECT_THAT(Content(response, "dir/foo.rpc.pb.cc"),
              AllOf(HasSubstr("RpcMethod::SERVER_STREAMING"),
                    HasSubstr("RpcMethod::CLIENT_STREAMING"),
                    HasSubstr("RpcMethod::BIDI_STREAMING")));
}

TEST(GeneratorTest, TwoMethodsThatBecomeOneNameAreRefused) {
  const CodeGeneratorResponse response = GenerateFrom(
      "service S {\n"
      "  rpc delete(M) returns (M);\n"
      "  rpc delete_(M) returns (M);\n"
      "}\n");
  EXPECT_THAT(response.error(),
              AllOf(HasSubstr("pkg.S.delete_ (line 6)"),
                    HasSubstr("another method is named delete_")));
}

TEST(GeneratorTest, AServiceThatBecomesAMessageNameIsRefused) {
  const CodeGeneratorResponse response = GenerateFrom(
      "message Stub_ {}\n"
      "service Stub { rpc Get(M) returns (M); }\n");
  EXPECT_THAT(response.error(),
              AllOf(HasSubstr("pkg.Stub (line 5)"), HasSubstr("Stub_")));
}

TEST(GeneratorTest, GenericServicesOfProtocNeedAnotherNamespace) {
  const std::string text =
      "option cc_generic_services = true;\n"
      "service S { rpc Get(M) returns (M); }\n";
  EXPECT_THAT(GenerateFrom(text).error(),
              AllOf(HasSubstr("cc_generic_services"),
                    HasSubstr("services_namespace=NAME")));
  const CodeGeneratorResponse response =
      GenerateFrom(text, "services_namespace=verbena");
  EXPECT_THAT(response.error(), IsEmpty());
  EXPECT_THAT(Content(response, "dir/foo.rpc.pb.h"),
              HasSubstr("namespace pkg {\nnamespace verbena {\n"));
}

TEST(GeneratorTest, UnknownParametersAreRefusedWithTheKnownOnes) {
  EXPECT_THAT(GenerateFrom("", "mocks=true").error(),
              AllOf(HasSubstr("unknown parameter \"mocks\""),
                    HasSubstr("services_namespace=NAME")));
}

TEST(GeneratorTest, NamespacesThatCppCannotHaveAreRefused) {
  for (const char* name : {"", "a::b", "1a", "class"}) {
    EXPECT_THAT(
        GenerateFrom("", std::string("services_namespace=") + name).error(),
        HasSubstr("cannot name a C++ namespace"))
        << name;
  }
}

TEST(GeneratorTest, CommentsReachTheHeader) {
  const std::string header = HeaderFrom(
      "\n"
      "// Apart.\n"
      "\n"
      "// Above the service.\n"
      "service S {\n"
      "  // In the service.\n"
      "\n"
      "  // Above Get.\n"
      "  //   indented\n"
      "  rpc Get(M) returns (M);  // Beside Get.\n"
      "  /* Above Put. */\n"
      "  rpc Put(M) returns (M);\n"
      "}\n");
  EXPECT_THAT(header, HasSubstr("// Apart.\n//\n// Above the service.\n"
                                "class S final {"));
  EXPECT_THAT(header, HasSubstr("  // In the service.\n"));
  EXPECT_THAT(header, HasSubstr("    // Above Get.\n    //   indented\n"
                                "    virtual ::rpc::Status Get("));
  EXPECT_THAT(header, HasSubstr("    // Beside Get.\n"
                                "    // Above Put.\n"
                                "    virtual ::rpc::Status Put("));
}

TEST(GeneratorTest, TheFilesOwnCommentReachesTheHeader) {
  const CodeGeneratorResponse response = Generate({{"a.proto",
                                                    "// A licence.\n"
                                                    "\n"
                                                    "// What it is for.\n"
                                                    "syntax = \"proto3\";\n"}},
                                                  "a.proto");
  EXPECT_THAT(Content(response, "a.rpc.pb.h"),
              HasSubstr("// A licence.\n//\n// What it is for.\n#ifndef"));
}

TEST(GeneratorTest, CommentsDoNotReachIntoTheCode) {
  const std::string header = HeaderFrom(
      "service S {\n"
      "  // C:\\new\\\n"
      "  rpc Get(M) returns (M);\n"
      "  // $Method$ and */ are but text\n"
      "  rpc Put(M) returns (M);\n"
      "}\n");
  EXPECT_THAT(header, HasSubstr("// C:\\new\\ .\n"));
  EXPECT_THAT(header, HasSubstr("// $Method$ and */ are but text\n"));
}

TEST(GeneratorTest, DeprecationIsToldToClientsOnly) {
  const std::string header = HeaderFrom(
      "service S {\n"
      "  option deprecated = true;\n"
      "  rpc Get(M) returns (M) { option deprecated = true; }\n"
      "}\n");
  EXPECT_THAT(
      header,
      AllOf(HasSubstr("[[deprecated(\"/pkg.S/Get\")]] ::rpc::Status Get("),
            HasSubstr("[[deprecated(\"pkg.S\")]] static")));
  EXPECT_THAT(header.substr(header.find("class Service : ")),
              Not(HasSubstr("deprecated")));
}

}  // namespace
}  // namespace rpc::compiler
