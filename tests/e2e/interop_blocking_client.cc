// The cases of interop_cases.h with functions that block.
#include <vector>

#include "rpc/rpc.h"
#include "tests/e2e/interop_cases.h"
#include "tests/e2e/interop_runs.h"

namespace interop {
namespace {

class BlockingClient {
 public:
  explicit BlockingClient(Stubs& stubs) : stubs_(stubs) {}

  rpc::Status EmptyCall(rpc::ClientContext* context, const Empty& request,
                        Empty* response) {
    return stubs_.test->EmptyCall(context, request, response);
  }
  rpc::Status UnaryCall(rpc::ClientContext* context,
                        const SimpleRequest& request,
                        SimpleResponse* response) {
    return stubs_.test->UnaryCall(context, request, response);
  }
  rpc::Status UnimplementedCall(rpc::ClientContext* context,
                                const Empty& request, Empty* response) {
    return stubs_.test->UnimplementedCall(context, request, response);
  }
  rpc::Status UnimplementedService(rpc::ClientContext* context,
                                   const Empty& request, Empty* response) {
    return stubs_.unimplemented->UnimplementedCall(context, request, response);
  }
  auto StreamingInputCall(rpc::ClientContext* context,
                          StreamingInputCallResponse* response) {
    return stubs_.test->StreamingInputCall(context, response);
  }
  auto StreamingOutputCall(rpc::ClientContext* context,
                           const StreamingOutputCallRequest& request) {
    return stubs_.test->StreamingOutputCall(context, request);
  }
  auto FullDuplexCall(rpc::ClientContext* context) {
    return stubs_.test->FullDuplexCall(context);
  }

 private:
  Stubs& stubs_;
};

}  // namespace

std::vector<Case> BlockingCases() {
  return CasesOf<BlockingClient>("Blocking");
}

}  // namespace interop
