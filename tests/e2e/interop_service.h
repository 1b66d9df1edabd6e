// The server of gRPC's interoperability cases (interop_cases.h), with the
// features "Echo Status" and "Echo Metadata".
//
//   interop::InteropService service;
//   builder.RegisterService(&service);
//
// Thread-safe, as services are.
#ifndef VERBENA_TESTS_E2E_INTEROP_SERVICE_H_
#define VERBENA_TESTS_E2E_INTEROP_SERVICE_H_

#include "rpc/rpc.h"
#include "tests/e2e/interop.rpc.pb.h"

namespace interop {

// Metadata of these keys come back: with the initial and with the trailing
// metadata.
inline constexpr char kEchoInitialKey[] = "x-grpc-test-echo-initial";
inline constexpr char kEchoTrailingKey[] = "x-grpc-test-echo-trailing-bin";

class InteropService final : public TestService::Service {
 public:
  rpc::Status EmptyCall(rpc::ServerContext* context, const Empty* request,
                        Empty* response) override;
  rpc::Status UnaryCall(rpc::ServerContext* context,
                        const SimpleRequest* request,
                        SimpleResponse* response) override;
  rpc::Status StreamingInputCall(
      rpc::ServerContext* context,
      rpc::ServerReader<StreamingInputCallRequest>* reader,
      StreamingInputCallResponse* response) override;
  rpc::Status StreamingOutputCall(
      rpc::ServerContext* context, const StreamingOutputCallRequest* request,
      rpc::ServerWriter<StreamingOutputCallResponse>* writer) override;
  rpc::Status FullDuplexCall(
      rpc::ServerContext* context,
      rpc::ServerReaderWriter<StreamingOutputCallResponse,
                              StreamingOutputCallRequest>* stream) override;
};

}  // namespace interop

#endif  // VERBENA_TESTS_E2E_INTEROP_SERVICE_H_
