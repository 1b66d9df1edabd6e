// The service of sample.proto, and reflection as an old server has it.
#ifndef VERBENA_TESTS_TOOLS_SAMPLE_SERVICE_H_
#define VERBENA_TESTS_TOOLS_SAMPLE_SERVICE_H_

#include "grpc/reflection/v1alpha/reflection.rpc.pb.h"
#include "rpc/rpc.h"
#include "tests/tools/sample.rpc.pb.h"

namespace tools {

class SampleService final : public sample::Sample::Service {
 public:
  rpc::Status Echo(rpc::ServerContext* context, const sample::Note* note,
                   sample::Note* answer) override;
  rpc::Status Wait(rpc::ServerContext* context, const sample::Note* note,
                   sample::Note* answer) override;
  rpc::Status Count(rpc::ServerContext* context, const sample::Note* note,
                    rpc::ServerWriter<sample::Note>* writer) override;
  rpc::Status Join(rpc::ServerContext* context,
                   rpc::ServerReader<sample::Note>* reader,
                   sample::Note* answer) override;
  rpc::Status Chat(
      rpc::ServerContext* context,
      rpc::ServerReaderWriter<sample::Note, sample::Note>* stream) override;
};

// Knows the older name only, and sends one file at a time.
class OldReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::Service {
 public:
  using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = grpc::reflection::v1alpha::ServerReflectionResponse;

  rpc::Status ServerReflectionInfo(
      rpc::ServerContext* context,
      rpc::ServerReaderWriter<Response, Request>* stream) override;
};

}  // namespace tools

#endif  // VERBENA_TESTS_TOOLS_SAMPLE_SERVICE_H_
