// The code generator: foo.proto in, foo.rpc.pb.h and foo.rpc.pb.cc out, beside
// the foo.pb.h of protoc's own generator, which they include.
//
//   protoc --plugin=protoc-gen-rpc=PATH --cpp_out=DIR --rpc_out=DIR foo.proto
//
// The generated classes have the names and signatures that gRPC's C++ generator
// gives them, over the runtime in rpc/. Mocks of the stubs are a third file,
// foo_mock.rpc.pb.h, where they are asked for. A file without services gets
// these files too, without classes, so that a build system can tell the outputs
// from the inputs' names.
//
// Thread rule: Generate may run in several threads at once.
#ifndef VERBENA_RPC_COMPILER_GENERATOR_H_
#define VERBENA_RPC_COMPILER_GENERATOR_H_

#include <cstdint>
#include <string>

#include "google/protobuf/compiler/code_generator.h"

namespace rpc::compiler {

class Generator final : public google::protobuf::compiler::CodeGenerator {
 public:
  // `parameter`: see parameters.h. False, with `error` set and nothing written,
  // where BuildFileModel or ParseParameters refuses.
  bool Generate(const google::protobuf::FileDescriptor* file,
                const std::string& parameter,
                google::protobuf::compiler::GeneratorContext* context,
                std::string* error) const override;

  // Optional fields of proto3 concern messages only.
  uint64_t GetSupportedFeatures() const override {
    return FEATURE_PROTO3_OPTIONAL;
  }
};

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_GENERATOR_H_
