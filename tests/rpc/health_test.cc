// Goal: a server answers gRPC's health checking as gRPC C++'s default service
// does, watches end with the server, and the user's own takes its place.
// Method: servers over the loopback transport, asked by generated stubs.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpc/health/v1/health.rpc.pb.h"
#include "grpc/reflection/v1/reflection.rpc.pb.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kServing = HealthCheckResponse::SERVING;
constexpr auto kNotServing = HealthCheckResponse::NOT_SERVING;
constexpr auto kServiceUnknown = HealthCheckResponse::SERVICE_UNKNOWN;

HealthCheckRequest RequestFor(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

// A client that watches a service.
class Watcher {
 public:
  Watcher(Health::Stub& stub, const std::string& service) {
    context_.set_deadline(absl::Now() + absl::Seconds(60));
    reader_ = stub.Watch(&context_, RequestFor(service));
  }

  // UNKNOWN, which the server never sends, where there is none.
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    return reader_->Read(&response) ? response.status()
                                    : HealthCheckResponse::UNKNOWN;
  }
  // Not by this side's wish.
  Status End() {
    EXPECT_EQ(Next(), HealthCheckResponse::UNKNOWN);
    return reader_->Finish();
  }
  Status Cancel() {
    context_.TryCancel();
    return reader_->Finish();
  }

 private:
  ClientContext context_;
  std::unique_ptr<ClientReaderInterface<HealthCheckResponse>> reader_;
};

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() : network_({.threads = 4}) {
    EnableDefaultHealthCheckService(true);
    builder_.AddListeningPort(network_.address(), InsecureServerCredentials());
    stub_ = Health::NewStub(
        CreateChannel(network_.address(), InsecureChannelCredentials()));
  }
  ~HealthTest() override { EnableDefaultHealthCheckService(false); }

  HealthCheckServiceInterface& Start() {
    server_ = builder_.BuildAndStart();
    return *server_->GetHealthCheckService();
  }

  Status Check(const std::string& service, HealthCheckResponse* response) {
    ClientContext context;
    context.set_deadline(absl::Now() + absl::Seconds(60));
    return stub_->Check(&context, RequestFor(service), response);
  }
  HealthCheckResponse::ServingStatus Check(const std::string& service) {
    HealthCheckResponse response;
    const Status status = Check(service, &response);
    EXPECT_TRUE(status.ok()) << status;
    return response.status();
  }
  StatusCode CheckFails(const std::string& service) {
    HealthCheckResponse response;
    return Check(service, &response).error_code();
  }

  LoopbackNetwork network_;
  ServerBuilder builder_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthTest, CheckTellsWhatTheServerWasTold) {
  HealthCheckServiceInterface& health = Start();
  EXPECT_EQ(Check(""), kServing);
  HealthCheckResponse response;
  const Status unknown = Check("kv.Store", &response);
  EXPECT_EQ(unknown.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(unknown.error_message(), "service name unknown");

  health.SetServingStatus("kv.Store", true);
  EXPECT_EQ(Check("kv.Store"), kServing);
  health.SetServingStatus("kv.Store", false);
  EXPECT_EQ(Check("kv.Store"), kNotServing);
  EXPECT_EQ(Check(""), kServing);
}

TEST_F(HealthTest, AllThatAreKnownChangeTogether) {
  HealthCheckServiceInterface& health = Start();
  health.SetServingStatus("kv.Store", true);
  Watcher of_another(*stub_, "kv.Another");
  EXPECT_EQ(of_another.Next(), kServiceUnknown);

  health.SetServingStatus(false);
  EXPECT_EQ(Check(""), kNotServing);
  EXPECT_EQ(Check("kv.Store"), kNotServing);
  EXPECT_EQ(CheckFails("kv.Another"), StatusCode::NOT_FOUND);
  health.SetServingStatus(true);
  EXPECT_EQ(Check(""), kServing);
  EXPECT_EQ(Check("kv.Store"), kServing);
  health.SetServingStatus("kv.Another", true);
  EXPECT_EQ(of_another.Next(), kServing);
}

TEST_F(HealthTest, AfterShutdownNothingServesWhateverIsSaid) {
  HealthCheckServiceInterface& health = Start();
  health.SetServingStatus("kv.Store", true);
  Watcher watcher(*stub_, "kv.Store");
  EXPECT_EQ(watcher.Next(), kServing);

  health.Shutdown();
  health.Shutdown();  // again is nothing new
  EXPECT_EQ(watcher.Next(), kNotServing);
  health.SetServingStatus("kv.Store", true);
  health.SetServingStatus(true);
  EXPECT_EQ(Check(""), kNotServing);
  EXPECT_EQ(Check("kv.Store"), kNotServing);
  health.SetServingStatus("kv.New", true);
  EXPECT_EQ(Check("kv.New"), kNotServing);
  server_->Shutdown();
  EXPECT_EQ(watcher.End().error_code(), StatusCode::CANCELLED);
}

TEST_F(HealthTest, ANameHasALimit) {
  HealthCheckServiceInterface& health = Start();
  const std::string longest(200, 'a');
  health.SetServingStatus(longest, true);
  health.SetServingStatus(longest + "a", true);
  EXPECT_EQ(Check(longest), kServing);
  Watcher watcher(*stub_, longest);
  EXPECT_EQ(watcher.Next(), kServing);

  HealthCheckResponse response;
  const Status status = Check(longest + "a", &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("201"));
  Watcher refused(*stub_, longest + "a");
  EXPECT_EQ(refused.End().error_code(), StatusCode::INTERNAL);
}

// ---- Watches ----

TEST_F(HealthTest, AWatchTellsThePresentStatusAndThenEachChange) {
  HealthCheckServiceInterface& health = Start();
  health.SetServingStatus("kv.Store", false);
  Watcher watcher(*stub_, "kv.Store");
  EXPECT_EQ(watcher.Next(), kNotServing);
  health.SetServingStatus("kv.Store", true);
  EXPECT_EQ(watcher.Next(), kServing);
  // No change, and another service.
  health.SetServingStatus("kv.Store", true);
  health.SetServingStatus("", false);
  health.SetServingStatus("kv.Store", false);
  EXPECT_EQ(watcher.Next(), kNotServing);
  EXPECT_EQ(watcher.Cancel().error_code(), StatusCode::CANCELLED);
}

TEST_F(HealthTest, AWatchOfAnUnknownServiceGoesOn) {
  HealthCheckServiceInterface& health = Start();
  Watcher watcher(*stub_, "kv.Store");
  EXPECT_EQ(watcher.Next(), kServiceUnknown);
  EXPECT_EQ(CheckFails("kv.Store"), StatusCode::NOT_FOUND);
  health.SetServingStatus("kv.Store", true);
  EXPECT_EQ(watcher.Next(), kServing);
}

TEST_F(HealthTest, ManyMayWatchOneService) {
  HealthCheckServiceInterface& health = Start();
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 50; ++i) {
    watchers.push_back(std::make_unique<Watcher>(*stub_, ""));
  }
  for (const auto& watcher : watchers) EXPECT_EQ(watcher->Next(), kServing);
  health.SetServingStatus(false);
  for (const auto& watcher : watchers) EXPECT_EQ(watcher->Next(), kNotServing);
}

TEST_F(HealthTest, AWatcherThatGoesAwayIsForgotten) {
  HealthCheckServiceInterface& health = Start();
  Watcher stays(*stub_, "kv.Store");
  EXPECT_EQ(stays.Next(), kServiceUnknown);
  {
    Watcher cancels(*stub_, "kv.Store");
    EXPECT_EQ(cancels.Next(), kServiceUnknown);
    EXPECT_EQ(cancels.Cancel().error_code(), StatusCode::CANCELLED);
    Watcher never_reads(*stub_, "kv.Store");
  }
  health.SetServingStatus("kv.Store", true);
  EXPECT_EQ(stays.Next(), kServing);
  EXPECT_EQ(stays.Cancel().error_code(), StatusCode::CANCELLED);
  network_.WaitUntilIdle();
  health.SetServingStatus("kv.Store", false);
  EXPECT_EQ(Check("kv.Store"), kNotServing);
}

TEST_F(HealthTest, AConnectionThatBreaksEndsItsWatches) {
  HealthCheckServiceInterface& health = Start();
  Watcher watcher(*stub_, "");
  EXPECT_EQ(watcher.Next(), kServing);
  network_.DropConnections();
  EXPECT_EQ(watcher.End().error_code(), StatusCode::UNAVAILABLE);
  health.SetServingStatus(false);
  EXPECT_EQ(Check(""), kNotServing);
}

// ---- The server's end ----

TEST_F(HealthTest, WatchesDoNotHoldTheServerUp) {
  Start();
  Watcher watcher(*stub_, "");
  Watcher of_unknown(*stub_, "kv.Store");
  EXPECT_EQ(watcher.Next(), kServing);
  EXPECT_EQ(of_unknown.Next(), kServiceUnknown);
  server_->Shutdown();
  EXPECT_EQ(watcher.End().error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(of_unknown.End().error_code(), StatusCode::CANCELLED);
}

TEST_F(HealthTest, WatchesThatComeWhileItShutsDownEndToo) {
  for (int round = 0; round < 20; ++round) {
    ServerBuilder builder;
    builder.AddListeningPort(network_.address(), InsecureServerCredentials());
    const std::unique_ptr<Server> server = builder.BuildAndStart();
    std::atomic<int> watching = 0;
    std::vector<std::thread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&] {
        while (true) {
          Watcher watcher(*stub_, "");
          const bool served = watcher.Next() == kServing;
          if (served) ++watching;
          const Status status = watcher.End();
          if (status.error_code() == StatusCode::UNAVAILABLE) return;
          EXPECT_EQ(status.error_code(), StatusCode::CANCELLED) << status;
        }
      });
    }
    while (watching == 0) std::this_thread::yield();
    server->Shutdown();
    for (std::thread& client : clients) client.join();
  }
}

TEST_F(HealthTest, StatusesChangeWhileWatchersComeAndGo) {
  HealthCheckServiceInterface& health = Start();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      for (bool serving = true; !stop; serving = !serving) {
        health.SetServingStatus("kv.Store", serving);
        if (i == 0) health.SetServingStatus(serving);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    Watcher watcher(*stub_, i % 2 == 0 ? "kv.Store" : "kv.Unknown");
    EXPECT_NE(watcher.Next(), HealthCheckResponse::UNKNOWN);
    if (i % 3 == 0) {
      EXPECT_EQ(watcher.Cancel().error_code(), StatusCode::CANCELLED);
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  health.SetServingStatus("kv.Store", true);
  EXPECT_EQ(Check("kv.Store"), kServing);
  network_.WaitUntilIdle();
  EXPECT_EQ(CheckFails("kv.Unknown"), StatusCode::NOT_FOUND);
}

// ---- Which service it is ----

TEST_F(HealthTest, WithoutBeingEnabledThereIsNone) {
  EXPECT_TRUE(DefaultHealthCheckServiceEnabled());
  EnableDefaultHealthCheckService(false);
  EXPECT_FALSE(DefaultHealthCheckServiceEnabled());
  server_ = builder_.BuildAndStart();
  EXPECT_EQ(server_->GetHealthCheckService(), nullptr);
  EXPECT_EQ(CheckFails(""), StatusCode::UNIMPLEMENTED);
}

class OwnHealth final : public HealthCheckServiceInterface {
 public:
  explicit OwnHealth(int* alive) : alive_(*alive) { ++alive_; }
  ~OwnHealth() override { --alive_; }
  void SetServingStatus(const std::string& service_name,
                        bool serving) override {}
  void SetServingStatus(bool serving) override {}

 private:
  int& alive_;
};

TEST_F(HealthTest, AnOptionGivesTheServerAnother) {
  int alive = 0;
  auto own = std::make_unique<OwnHealth>(&alive);
  OwnHealth* const expected = own.get();
  // The last one counts.
  builder_.SetOption(std::make_unique<HealthCheckServiceServerBuilderOption>(
      std::make_unique<OwnHealth>(&alive)));
  builder_.SetOption(
      std::make_unique<HealthCheckServiceServerBuilderOption>(std::move(own)));
  EXPECT_EQ(&Start(), expected);
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(CheckFails(""), StatusCode::UNIMPLEMENTED);
  server_ = nullptr;
  EXPECT_EQ(alive, 0);
}

TEST_F(HealthTest, AnOptionTakesTheDefaultAway) {
  builder_.SetOption(
      std::make_unique<HealthCheckServiceServerBuilderOption>(nullptr));
  server_ = builder_.BuildAndStart();
  EXPECT_EQ(server_->GetHealthCheckService(), nullptr);
  EXPECT_EQ(CheckFails(""), StatusCode::UNIMPLEMENTED);
}

TEST_F(HealthTest, AServerThatIsNotBuiltLeavesNothing) {
  int alive = 0;
  {
    ServerBuilder builder;
    builder.SetOption(std::make_unique<HealthCheckServiceServerBuilderOption>(
        std::make_unique<OwnHealth>(&alive)));
    builder.AddListeningPort("localhost:0", /*credentials=*/nullptr);
    EXPECT_FALSE(builder.BuildAndStartOrStatus().ok());
  }
  EXPECT_EQ(alive, 0);
}

class OwnService final : public Health::Service {
  Status Check(ServerContext* context, const HealthCheckRequest* request,
               HealthCheckResponse* response) override {
    response->set_status(kNotServing);
    return Status::OK;
  }
};

TEST_F(HealthTest, AServiceOfTheUsersIsWhatClientsReach) {
  OwnService service;
  builder_.RegisterService(&service);
  Start().SetServingStatus("kv.Store", true);  // no client hears of it
  EXPECT_EQ(Check("kv.Store"), kNotServing);
  Watcher watcher(*stub_, "");
  EXPECT_EQ(watcher.End().error_code(), StatusCode::UNIMPLEMENTED);
  server_ = nullptr;
}

// For every server of this process that is built later.
TEST_F(HealthTest, ReflectionListsIt) {
  reflection::InitProtoReflectionServerBuilderPlugin();
  Start();
  const auto stub = grpc::reflection::v1::ServerReflection::NewStub(
      CreateChannel(network_.address(), InsecureChannelCredentials()));
  ClientContext context;
  context.set_deadline(absl::Now() + absl::Seconds(60));
  const auto stream = stub->ServerReflectionInfo(&context);
  grpc::reflection::v1::ServerReflectionRequest request;
  grpc::reflection::v1::ServerReflectionResponse response;
  request.set_list_services("");
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(stream->Read(&response));
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, ElementsAre("grpc.health.v1.Health",
                                 "grpc.reflection.v1.ServerReflection",
                                 "grpc.reflection.v1alpha.ServerReflection"));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(HealthProtoTest, HasGrpcsNamesAndNumbers) {
  const google::protobuf::ServiceDescriptor* const service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
          "grpc.health.v1.Health");
  HealthCheckRequest request;  // links the file
  ASSERT_NE(service, nullptr);
  EXPECT_EQ(service->FindMethodByName("Check")->server_streaming(), false);
  EXPECT_EQ(service->FindMethodByName("Watch")->server_streaming(), true);
  EXPECT_EQ(request.GetDescriptor()->FindFieldByName("service")->number(), 1);
  const auto* const status =
      HealthCheckResponse::descriptor()->FindFieldByName("status");
  EXPECT_EQ(status->number(), 1);
  std::map<std::string, int> values;
  for (int i = 0; i < status->enum_type()->value_count(); ++i) {
    values[status->enum_type()->value(i)->name()] =
        status->enum_type()->value(i)->number();
  }
  EXPECT_EQ(values, (std::map<std::string, int>{{"UNKNOWN", 0},
                                                {"SERVING", 1},
                                                {"NOT_SERVING", 2},
                                                {"SERVICE_UNKNOWN", 3}}));
}

}  // namespace
}  // namespace rpc::testing
