// Goal: health checking over the device under test: watches cost no thread,
// hold up neither each other nor the server, whether their clients read or not,
// and end with it.
// Method: a server in this process with the default service, and blocking
// clients. Servers have one thread for handlers and no queue for it: a watch
// that needed one would be refused.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.rpc.pb.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr auto kServing = HealthCheckResponse::SERVING;
constexpr auto kNotServing = HealthCheckResponse::NOT_SERVING;
constexpr auto kNoFurther = HealthCheckResponse::UNKNOWN;

HealthCheckRequest RequestFor(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

class Watcher {
 public:
  Watcher(Health::Stub& stub, const std::string& service)
      : reader_(stub.Watch(&context_, RequestFor(service))) {}

  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    return reader_->Read(&response) ? response.status() : kNoFurther;
  }
  rpc::Status Finish() { return reader_->Finish(); }
  TimedContext& context() { return context_; }

 private:
  TimedContext context_;
  std::unique_ptr<rpc::ClientReader<HealthCheckResponse>> reader_;
};

class HealthTest : public testing::Test {
 protected:
  HealthTest() { rpc::EnableDefaultHealthCheckService(true); }
  ~HealthTest() override { rpc::EnableDefaultHealthCheckService(false); }

  void Start(const Arguments& arguments = {{"verbena.handler_threads", 1},
                                           {"verbena.handler_queue", 0}},
             rpc::Service* another = nullptr) {
    server_ = std::make_unique<Server>(arguments, ServerUri(), another);
    ASSERT_TRUE(server_->ok()) << server_->status();
    stub_ = Health::NewStub(Client(server_->address()).shared_channel());
  }
  rpc::HealthCheckServiceInterface& health() {
    return *server_->server().GetHealthCheckService();
  }

  rpc::Status Check(const std::string& service, HealthCheckResponse* response) {
    TimedContext context;
    return stub_->Check(&context, RequestFor(service), response);
  }
  void ExpectStatus(const std::string& service,
                    HealthCheckResponse::ServingStatus status) {
    HealthCheckResponse response;
    EXPECT_OK(Check(service, &response));
    EXPECT_EQ(response.status(), status);
  }

  // Changes the status until the server may send no more to one that does not
  // read, at two bytes for each change of a window of 64 KiB. Ends with
  // kServing.
  void ExhaustWindows(const std::string& service) {
    Watcher reader(*stub_, service);
    reader.Next();
    const int rounds = TheDeviceUnderTest().Rounds(20'000);
    for (int i = 0; i < rounds; ++i) {
      health().SetServingStatus(service, false);
      ASSERT_EQ(reader.Next(), kNotServing);
      health().SetServingStatus(service, true);
      ASSERT_EQ(reader.Next(), kServing);
    }
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthTest, ClientsAskOnceOrWatch) {
  Start();
  ExpectStatus("", kServing);
  HealthCheckResponse response;
  EXPECT_TRUE(
      HasCode(Check("kv.Store", &response), rpc::StatusCode::NOT_FOUND));
  Watcher watcher(*stub_, "kv.Store");
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  health().SetServingStatus("kv.Store", true);
  EXPECT_EQ(watcher.Next(), kServing);
  ExpectStatus("kv.Store", kServing);
  health().SetServingStatus(false);
  EXPECT_EQ(watcher.Next(), kNotServing);
  ExpectStatus("", kNotServing);
  watcher.context().TryCancel();
  EXPECT_TRUE(HasCode(watcher.Finish(), rpc::StatusCode::CANCELLED));
}

TEST_F(HealthTest, ManyWatchOneServiceWithoutAThread) {
  Start();
  const int count = 10 + TheDeviceUnderTest().Rounds(300);
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < count; ++i) {
    watchers.push_back(std::make_unique<Watcher>(*stub_, ""));
    ASSERT_EQ(watchers.back()->Next(), kServing);
  }
  for (int i = 0; i < 3; ++i) {
    health().SetServingStatus(false);
    for (const auto& watcher : watchers) {
      ASSERT_EQ(watcher->Next(), kNotServing);
    }
    health().SetServingStatus(true);
    for (const auto& watcher : watchers) ASSERT_EQ(watcher->Next(), kServing);
  }
  health().Shutdown();
  for (const auto& watcher : watchers) ASSERT_EQ(watcher->Next(), kNotServing);
}

TEST_F(HealthTest, AWatcherThatDoesNotReadHoldsUpNobody) {
  Start();
  Watcher sleeper(*stub_, "kv.Store");
  ASSERT_EQ(sleeper.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  ASSERT_NO_FATAL_FAILURE(ExhaustWindows("kv.Store"));
  ExpectStatus("kv.Store", kServing);

  // It hears of changes again once it reads, and of none twice.
  std::atomic<HealthCheckResponse::ServingStatus> last =
      HealthCheckResponse::SERVICE_UNKNOWN;
  std::thread awake([&] {
    for (auto next = sleeper.Next(); next != kNoFurther;
         next = sleeper.Next()) {
      EXPECT_NE(next, last);
      last = next;
    }
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Eventually([&] { return last == kServing; }));
    health().SetServingStatus("kv.Store", false);
    EXPECT_TRUE(Eventually([&] { return last == kNotServing; }));
    health().SetServingStatus("kv.Store", true);
  }
  sleeper.context().TryCancel();
  awake.join();
}

TEST_F(HealthTest, WatchersThatGoAwayAreForgotten) {
  Start();
  for (int i = 0; i < TheDeviceUnderTest().Rounds(100); ++i) {
    Watcher watcher(*stub_, "kv.Store");
    Watcher never_read(*stub_, "kv.Store");
    EXPECT_NE(watcher.Next(), kNoFurther);
    health().SetServingStatus("kv.Store", i % 2 == 0);
  }
  ExpectStatus("", kServing);
  server_->server().Shutdown();
}

TEST_F(HealthTest, AServerThatShutsDownEndsItsWatches) {
  Start();
  Watcher watcher(*stub_, "");
  EXPECT_EQ(watcher.Next(), kServing);
  Watcher never_read(*stub_, "");
  Watcher sleeper(*stub_, "kv.Store");
  ASSERT_NE(sleeper.Next(), kNoFurther);
  ASSERT_NO_FATAL_FAILURE(ExhaustWindows("kv.Store"));
  health().SetServingStatus("kv.Store", false);  // waits for the sleeper
  server_->server().Shutdown();
  // Not by their deadlines.
  EXPECT_EQ(watcher.Next(), kNoFurther);
  EXPECT_TRUE(HasCode(watcher.Finish(), rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(HasCode(never_read.Finish(), rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(HasCode(sleeper.Finish(), rpc::StatusCode::CANCELLED));
}

class OwnService final : public Health::Service {
  rpc::Status Check(rpc::ServerContext* context,
                    const HealthCheckRequest* request,
                    HealthCheckResponse* response) override {
    response->set_status(request->service() == "mine" ? kServing : kNotServing);
    return rpc::Status::OK;
  }
  rpc::Status Watch(rpc::ServerContext* context,
                    const HealthCheckRequest* request,
                    rpc::ServerWriter<HealthCheckResponse>* writer) override {
    HealthCheckResponse response;
    response.set_status(kNotServing);
    writer->Write(response);
    return rpc::Status::OK;
  }
};

TEST_F(HealthTest, TheUsersServiceTakesTheDefaultsPlace) {
  OwnService own;
  Start({}, &own);
  ExpectStatus("mine", kServing);
  ExpectStatus("", kNotServing);
  Watcher watcher(*stub_, "mine");
  EXPECT_EQ(watcher.Next(), kNotServing);
  EXPECT_EQ(watcher.Next(), kNoFurther);
  EXPECT_OK(watcher.Finish());
  server_ = nullptr;
}

}  // namespace
}  // namespace e2e
