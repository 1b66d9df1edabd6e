// Goal: what the plugin accepts and what it refuses, what its messages tell a
// .proto file's author, and which of the file's text reaches the output.
// Method: .proto text in memory (memory_generator.h). That the output compiles
// and works is shown by generated_code_test.
#include <gmock/gmock.h>
#include <google/protobuf/compiler/plugin.pb.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/compiler/memory_generator.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::compiler::CodeGeneratorResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

TEST(GeneratorTest, AMethodThatBecomesAPartOfAnotherIsRefused) {
  const CodeGeneratorResponse response = GenerateFrom(
      "service S {\n"
      "  rpc Get(M) returns (M);\n"
      "  rpc GetRaw(M) returns (stream N);\n"
      "  rpc Chat(stream M) returns (stream M);\n"
      "  rpc ChatRaw(stream N) returns (stream N);\n"
      "}\n"
      "message N {}\n");
  EXPECT_THAT(response.error(),
              AllOf(HasSubstr("pkg.S.GetRaw (line 6)"),
                    HasSubstr("GetRaw is in C++ a part of Get"),
                    HasSubstr("pkg.S.ChatRaw (line 8)")));
  // Other parameters make it another function, as in gRPC.
  EXPECT_THAT(GenerateFrom("service S {\n"
                           "  rpc Get(M) returns (M);\n"
                           "  rpc GetRaw(N) returns (M);\n"
                           "  rpc Load(stream M) returns (M);\n"
                           "  rpc LoadRaw(stream M) returns (N);\n"
                           "}\n"
                           "message N {}\n")
                  .error(),
              IsEmpty());
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

TEST(GeneratorTest, MocksAreAFileOfTheirOwnWhereAskedFor) {
  const std::string text = "service S { rpc Get(M) returns (M); }";
  EXPECT_EQ(GenerateFrom(text, "generate_mock_code=false").file_size(), 2);
  const CodeGeneratorResponse response =
      GenerateFrom(text, "generate_mock_code=true");
  EXPECT_EQ(response.file_size(), 3);
  EXPECT_THAT(Content(response, "dir/foo_mock.rpc.pb.h"),
              AllOf(HasSubstr("#include <gmock/gmock.h>"),
                    HasSubstr("#include \"dir/foo.rpc.pb.h\""),
                    HasSubstr("class MockSStub : public S::StubInterface {")));
  EXPECT_THAT(Content(response, "dir/foo.rpc.pb.h"), Not(HasSubstr("gmock")));
  EXPECT_EQ(GenerateFrom("", "generate_mock_code=true").file_size(), 3);
}

TEST(GeneratorTest, AMockOfATakenNameIsRefused) {
  const std::string mocks = "generate_mock_code=true";
  const std::string message =
      "message MockSStub {}\n"
      "service S { rpc Get(M) returns (M); }\n";
  EXPECT_THAT(GenerateFrom(message, mocks).error(),
              AllOf(HasSubstr("pkg.S (line 5)"), HasSubstr("MockSStub")));
  EXPECT_THAT(GenerateFrom(message).error(), IsEmpty());
  const std::string apart = mocks + ",services_namespace=apart";
  EXPECT_THAT(GenerateFrom(message, apart).error(), IsEmpty());
  EXPECT_THAT(GenerateFrom("service MockSStub {} service S {}", apart).error(),
              HasSubstr("MockSStub, its class in C++, exists already"));
}

TEST(GeneratorTest, UnknownParametersAreRefusedWithTheKnownOnes) {
  EXPECT_THAT(GenerateFrom("", "mocks=true").error(),
              AllOf(HasSubstr("unknown parameter \"mocks\""),
                    HasSubstr("services_namespace=NAME"),
                    HasSubstr("generate_mock_code=true")));
}

TEST(GeneratorTest, ValuesOfParametersThatAreNoneAreRefused) {
  for (const std::string value : {"", "1", "True"}) {
    EXPECT_THAT(GenerateFrom("", "generate_mock_code=" + value).error(),
                HasSubstr("\"" + value + "\" is neither true nor false"));
  }
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
