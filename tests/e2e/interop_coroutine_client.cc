// The cases of interop_cases.h with coroutines: one for each thing that a case
// waits for.
#include <memory>
#include <utility>
#include <vector>

#include "rpc/rpc.h"
#include "tests/e2e/interop_cases.h"
#include "tests/e2e/interop_runs.h"

namespace interop {
namespace {

// Of `awaitable`, by a coroutine that awaits nothing else.
template <class Result, class Awaitable>
Result ResultOf(Awaitable&& awaitable) {
  return rpc::SyncWait([](Awaitable& awaitable) -> rpc::Task<Result> {
    co_return co_await awaitable;
  }(awaitable));
}

// `Stream`: one of rpc::CoroClient*.
template <class Stream>
class CoroutineStream {
 public:
  explicit CoroutineStream(std::unique_ptr<Stream> stream)
      : stream_(std::move(stream)) {}

  template <class R>
  bool Read(R* message) {
    return ResultOf<bool>(stream_->Read(message));
  }
  template <class W>
  bool Write(const W& message) {
    return ResultOf<bool>(stream_->Write(message));
  }
  bool WritesDone() { return ResultOf<bool>(stream_->WritesDone()); }
  rpc::Status Finish() { return ResultOf<rpc::Status>(stream_->Finish()); }

 private:
  const std::unique_ptr<Stream> stream_;
};

template <class Stream>
auto MakeStream(std::unique_ptr<Stream> stream) {
  return std::make_unique<CoroutineStream<Stream>>(std::move(stream));
}

class CoroutineClient {
 public:
  explicit CoroutineClient(Stubs& stubs) : stubs_(stubs) {}

  rpc::Status EmptyCall(rpc::ClientContext* context, const Empty& request,
                        Empty* response) {
    return ResultOf<rpc::Status>(
        stubs_.test->coro()->EmptyCall(context, request, response));
  }
  rpc::Status UnaryCall(rpc::ClientContext* context,
                        const SimpleRequest& request,
                        SimpleResponse* response) {
    return ResultOf<rpc::Status>(
        stubs_.test->coro()->UnaryCall(context, request, response));
  }
  rpc::Status UnimplementedCall(rpc::ClientContext* context,
                                const Empty& request, Empty* response) {
    return ResultOf<rpc::Status>(
        stubs_.test->coro()->UnimplementedCall(context, request, response));
  }
  rpc::Status UnimplementedService(rpc::ClientContext* context,
                                   const Empty& request, Empty* response) {
    return ResultOf<rpc::Status>(
        stubs_.unimplemented->coro()->UnimplementedCall(context, request,
                                                        response));
  }
  auto StreamingInputCall(rpc::ClientContext* context,
                          StreamingInputCallResponse* response) {
    return MakeStream(
        stubs_.test->coro()->StreamingInputCall(context, response));
  }
  auto StreamingOutputCall(rpc::ClientContext* context,
                           const StreamingOutputCallRequest& request) {
    return MakeStream(
        stubs_.test->coro()->StreamingOutputCall(context, request));
  }
  auto FullDuplexCall(rpc::ClientContext* context) {
    return MakeStream(stubs_.test->coro()->FullDuplexCall(context));
  }

 private:
  Stubs& stubs_;
};

}  // namespace

std::vector<Case> CoroutineCases() {
  return CasesOf<CoroutineClient>("Coroutine");
}

}  // namespace interop
