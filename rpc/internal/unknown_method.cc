#include "rpc/internal/unknown_method.h"

#include "rpc/internal/server_call.h"
#include "rpc/server_context.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc::internal {
namespace {

class UnknownMethodCall final : public ServerCall {
 public:
  UnknownMethodCall() : ServerCall(&context_) {}

 private:
  bool DecodeRequest(IncomingFrame&, Status*) override { return true; }
  void Run() override { Refuse(Status(StatusCode::UNIMPLEMENTED, "")); }
  void RunTask() override {}

  ServerContext context_;
};

class UnknownMethodHandler final : public MethodHandler {
 public:
  ServerCall* NewCall() override { return new UnknownMethodCall(); }
};

}  // namespace

std::shared_ptr<MethodHandler> UnknownMethod() {
  return std::make_shared<UnknownMethodHandler>();
}

}  // namespace rpc::internal
