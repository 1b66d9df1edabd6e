// The protoc plugin as a program. protoc starts it, hands it the parsed files
// on standard input and takes the generated ones from standard output.
#include <cstdio>
#include <cstring>

#include "google/protobuf/compiler/plugin.h"
#include "rpc/compiler/generator.h"

namespace {

constexpr char kHelp[] =
    "protoc-gen-rpc: generates C++ services and stubs for Verbena.\n"
    "\n"
    "protoc runs it; it does nothing by itself:\n"
    "  protoc --plugin=protoc-gen-rpc=PATH --cpp_out=DIR --rpc_out=DIR "
    "foo.proto\n"
    "makes DIR/foo.pb.{h,cc} and DIR/foo.rpc.pb.{h,cc}. Without --plugin, "
    "protoc\n"
    "looks for protoc-gen-rpc in PATH. With Bazel: cc_rpc_library in\n"
    "rpc/defs.bzl.\n"
    "\n"
    "Parameters (--rpc_opt=NAME=VALUE):\n"
    "  services_namespace=NAME  a namespace inside the package's for the "
    "classes\n"
    "  generate_mock_code=true  foo_mock.rpc.pb.h besides: gmock classes for "
    "stubs\n";

}  // namespace

int main(int argc, char* argv[]) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const rpc::compiler::Generator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
