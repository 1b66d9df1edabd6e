// What the tests of clients with completion queues have in common: a blocking
// service, a client on one connection, a queue.
//
//   class MyTest : public AsyncClientFixture<testing::Test> {};
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_E2E_ASYNC_CLIENT_FIXTURE_H_
#define VERBENA_TESTS_E2E_ASYNC_CLIENT_FIXTURE_H_

#include <cstddef>
#include <memory>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"
#include "tests/rpc/queue_events.h"

namespace e2e {

template <class Base>
class AsyncClientFixture : public Base {
 protected:
  // Beside its frame's other parts, and to be fetched by rendezvous.
  static constexpr size_t kSmall = 100;
  static constexpr size_t kLarge = 200'000;

  // Tags.
  enum : int { kStart = 1, kMetadata, kRead, kWrite, kWritesDone, kFinish };

  AsyncClientFixture()
      : service_([](rpc::ServerContext* context) {
          context->AddInitialMetadata("first", "1");
          context->AddTrailingMetadata("last", "2");
        }),
        ends_(&service_) {}

  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }

  rpc::CompletionQueue* queue() { return events_.queue(); }

  // A request that ends a stream with ABORTED.
  static Parcel Abort() {
    Parcel request;
    request.set_end(true);
    request.set_code(rpc::StatusCode::ABORTED);
    return request;
  }

  // How a unary call ends.
  rpc::Status EndOf(rpc::ClientAsyncResponseReader<Parcel>& call,
                    Parcel* response) {
    rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
    call.Finish(response, &status, rpc::testing::Tag(kFinish));
    EXPECT_TRUE(events_.Comes(kFinish));
    return status;
  }
  // How a stream does.
  template <class Stream>
  rpc::Status End(Stream& stream) {
    rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
    stream.Finish(&status, rpc::testing::Tag(kFinish));
    EXPECT_TRUE(events_.Comes(kFinish));
    return status;
  }
  // The same of one that does nothing any more.
  template <class Stream>
  rpc::Status EndOfDead(Stream& stream) {
    Parcel response;
    stream.Write(ParcelFor(1), rpc::testing::Tag(kWrite));
    EXPECT_TRUE(events_.Comes(kWrite, false));
    stream.Read(&response, rpc::testing::Tag(kRead));
    EXPECT_TRUE(events_.Comes(kRead, false));
    stream.WritesDone(rpc::testing::Tag(kWritesDone));
    EXPECT_TRUE(events_.Comes(kWritesDone, false));
    return End(stream);
  }

  ParcelService service_;
  OneConnection ends_;
  std::unique_ptr<Parcels::Stub> stub_;
  rpc::testing::QueueEvents events_;
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_ASYNC_CLIENT_FIXTURE_H_
