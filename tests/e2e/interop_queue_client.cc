// The cases of interop_cases.h with completion queues: one for each stream, and
// one for a client's unary calls.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/interop_cases.h"
#include "tests/e2e/interop_runs.h"
#include "tests/rpc/queue_events.h"

namespace interop {
namespace {

using rpc::testing::QueueEvents;
using rpc::testing::Tag;

// Tags.
enum : int { kStart = 1, kRead, kWrite, kWritesDone, kFinish };

// `Stream`: one of rpc::ClientAsync*; its queue is in this.
template <class Stream>
class QueueStream {
 public:
  // `begin` gets a queue and a tag.
  template <class Begin>
  explicit QueueStream(Begin begin)
      : stream_(begin(events_.queue(), Tag(kStart))) {
    // Its deadline may have passed by now.
    Result(kStart);
  }

  template <class R>
  bool Read(R* message) {
    stream_->Read(message, Tag(kRead));
    return Result(kRead);
  }
  template <class W>
  bool Write(const W& message) {
    stream_->Write(message, Tag(kWrite));
    return Result(kWrite);
  }
  bool WritesDone() {
    stream_->WritesDone(Tag(kWritesDone));
    return Result(kWritesDone);
  }
  rpc::Status Finish() {
    rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
    stream_->Finish(&status, Tag(kFinish));
    EXPECT_TRUE(events_.Comes(kFinish));
    return status;
  }

 private:
  bool Result(int tag) {
    bool ok = false;
    EXPECT_TRUE(events_.Get(tag, &ok));
    return ok;
  }

  QueueEvents events_;
  const std::unique_ptr<Stream> stream_;
};

class QueueClient {
 public:
  explicit QueueClient(Stubs& stubs) : stubs_(stubs) {}

  rpc::Status EmptyCall(rpc::ClientContext* context, const Empty& request,
                        Empty* response) {
    return End(stubs_.test->AsyncEmptyCall(context, request, events_.queue()),
               response);
  }
  rpc::Status UnaryCall(rpc::ClientContext* context,
                        const SimpleRequest& request,
                        SimpleResponse* response) {
    return End(stubs_.test->AsyncUnaryCall(context, request, events_.queue()),
               response);
  }
  rpc::Status UnimplementedCall(rpc::ClientContext* context,
                                const Empty& request, Empty* response) {
    return End(
        stubs_.test->AsyncUnimplementedCall(context, request, events_.queue()),
        response);
  }
  rpc::Status UnimplementedService(rpc::ClientContext* context,
                                   const Empty& request, Empty* response) {
    return End(stubs_.unimplemented->AsyncUnimplementedCall(context, request,
                                                            events_.queue()),
               response);
  }
  auto StreamingInputCall(rpc::ClientContext* context,
                          StreamingInputCallResponse* response) {
    using Stream = rpc::ClientAsyncWriter<StreamingInputCallRequest>;
    return std::make_unique<QueueStream<Stream>>(
        [&](rpc::CompletionQueue* queue, void* tag) {
          return stubs_.test->AsyncStreamingInputCall(context, response, queue,
                                                      tag);
        });
  }
  auto StreamingOutputCall(rpc::ClientContext* context,
                           const StreamingOutputCallRequest& request) {
    using Stream = rpc::ClientAsyncReader<StreamingOutputCallResponse>;
    return std::make_unique<QueueStream<Stream>>(
        [&](rpc::CompletionQueue* queue, void* tag) {
          return stubs_.test->AsyncStreamingOutputCall(context, request, queue,
                                                       tag);
        });
  }
  auto FullDuplexCall(rpc::ClientContext* context) {
    using Stream = rpc::ClientAsyncReaderWriter<StreamingOutputCallRequest,
                                                StreamingOutputCallResponse>;
    return std::make_unique<QueueStream<Stream>>(
        [&](rpc::CompletionQueue* queue, void* tag) {
          return stubs_.test->AsyncFullDuplexCall(context, queue, tag);
        });
  }

 private:
  template <class Call, class Response>
  rpc::Status End(Call call, Response* response) {
    rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
    call->Finish(response, &status, Tag(kFinish));
    EXPECT_TRUE(events_.Comes(kFinish));
    return status;
  }

  Stubs& stubs_;
  QueueEvents events_;
};

}  // namespace

std::vector<Case> QueueCases() { return CasesOf<QueueClient>("Queue"); }

}  // namespace interop
