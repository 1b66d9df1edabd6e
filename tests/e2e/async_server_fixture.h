// What the tests of servers with completion queues have in common: a server
// whose service is asynchronous, and a client that is, too, so that one thread
// plays both.
//
//   class MyTest : public AsyncServerFixture<Parcels::AsyncService> {};
//
//   TEST_F(MyTest, Answers) {
//     AskedUnary asked;
//     Ask(asked, Tag(1));
//     MadeUnary made;
//     Make(made, Parcel(), Tag(1));
//     EXPECT_TRUE(served().Comes(1));
//     asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(2));
//     EXPECT_TRUE(served().Comes(2));
//     EXPECT_TRUE(made_.Comes(1));
//     EXPECT_OK(made.status);
//   }
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_E2E_ASYNC_SERVER_FIXTURE_H_
#define VERBENA_TESTS_E2E_ASYNC_SERVER_FIXTURE_H_

#include <memory>
#include <optional>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/parcels.h"
#include "tests/rpc/queue_events.h"

namespace e2e {

// What a server's user asks for a call with.
template <class Responder>
struct Asked {
  rpc::ServerContext context;
  Parcel request;  // of kinds that have one
  Responder responder{&context};
};
using AskedUnary = Asked<rpc::ServerAsyncResponseWriter<Parcel>>;
using AskedUpload = Asked<rpc::ServerAsyncReader<Parcel, Parcel>>;
using AskedDownload = Asked<rpc::ServerAsyncWriter<Parcel>>;
using AskedChat = Asked<rpc::ServerAsyncReaderWriter<Parcel, Parcel>>;

// A unary call of the client, whose end is awaited.
struct MadeUnary {
  TimedContext context;
  Parcel response;
  rpc::Status status{rpc::StatusCode::DATA_LOSS, "it was never set"};
};

template <class AsyncService>
class AsyncServerFixture : public testing::Test {
 protected:
  void SetUp() override { Start(); }
  void Start(const Arguments& arguments = {}) {
    server_.emplace(arguments, ServerUri(), &service_, &queue_);
    ASSERT_TRUE(server_->ok()) << server_->status();
    served_.emplace(queue_.get());
    client_.emplace(server_->address());
    stub_ = Parcels::NewStub(client_->shared_channel());
  }

  // Requests that are left are answered with false, and nobody looks.
  void TearDown() override {
    served_.reset();
    if (server_.has_value()) {
      if (!server_->ok()) return;
      server_->server().Shutdown(absl::Now());
    }
    queue_->Shutdown();
    void* tag;
    bool ok;
    while (queue_->Next(&tag, &ok)) {
    }
  }

  rpc::testing::QueueEvents& served() { return *served_; }
  rpc::Server& server() { return server_->server(); }

  void Ask(AskedUnary& asked, void* tag) {
    service_.RequestUnary(&asked.context, &asked.request, &asked.responder,
                          queue_.get(), queue_.get(), tag);
  }
  void Ask(AskedUpload& asked, void* tag) {
    service_.RequestUpload(&asked.context, &asked.responder, queue_.get(),
                           queue_.get(), tag);
  }
  void Ask(AskedDownload& asked, void* tag) {
    service_.RequestDownload(&asked.context, &asked.request, &asked.responder,
                             queue_.get(), queue_.get(), tag);
  }
  void Ask(AskedChat& asked, void* tag) {
    service_.RequestChat(&asked.context, &asked.responder, queue_.get(),
                         queue_.get(), tag);
  }

  // `tag` is that of its end.
  void Make(MadeUnary& made, const Parcel& request, void* tag) {
    stub_->AsyncUnary(&made.context, request, made_.queue())
        ->Finish(&made.response, &made.status, tag);
  }
  // What the client sent so far has reached the server: it comes in order.
  void AwaitArrival() { client_->Observe(); }

  AsyncService service_;
  std::unique_ptr<rpc::ServerCompletionQueue> queue_;
  std::optional<Server> server_;
  std::optional<Client> client_;
  std::unique_ptr<Parcels::Stub> stub_;
  rpc::testing::QueueEvents made_;  // of the client's queue

 private:
  std::optional<rpc::testing::QueueEvents> served_;  // of the server's
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_ASYNC_SERVER_FIXTURE_H_
