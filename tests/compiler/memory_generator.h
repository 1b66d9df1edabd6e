// The plugin without files: .proto text in memory, parsed by protobuf's own
// parser, through the plugin's protocol (CodeGeneratorRequest to
// CodeGeneratorResponse).
//
//   EXPECT_THAT(HeaderFrom("service S { rpc Get(M) returns (M); }"),
//               HasSubstr("class S final"));
//
// What the parser refuses fails the test. Thread rule: pure functions.
#ifndef VERBENA_TESTS_COMPILER_MEMORY_GENERATOR_H_
#define VERBENA_TESTS_COMPILER_MEMORY_GENERATOR_H_

#include <google/protobuf/compiler/plugin.pb.h>

#include <map>
#include <string>

namespace rpc::compiler {

// Runs the plugin for `name`, one of `files`: text by path.
google::protobuf::compiler::CodeGeneratorResponse Generate(
    std::map<std::string, std::string> files, const std::string& name,
    const std::string& parameter = "");

// The same for one file, dir/foo.proto, of package pkg, that has an empty
// message M, and then `text` from line 4 on.
google::protobuf::compiler::CodeGeneratorResponse GenerateFrom(
    const std::string& text, const std::string& parameter = "");

// A file of the response's. Fails the test where there is none.
std::string Content(
    const google::protobuf::compiler::CodeGeneratorResponse& response,
    const std::string& name);

// What GenerateFrom makes of `text`.
std::string HeaderFrom(const std::string& text);
std::string SourceFrom(const std::string& text);

}  // namespace rpc::compiler

#endif  // VERBENA_TESTS_COMPILER_MEMORY_GENERATOR_H_
