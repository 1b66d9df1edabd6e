// Goal: what the plugin generates compiles, whatever a .proto file holds, and
// has gRPC's shape: a program written for gRPC's classes finds the same names,
// types and overloads. Method: .proto files with every odd case, through
// cc_rpc_library; the shape is checked by static_assert and by code that uses
// the classes in each of the ways that gRPC's users do. That calls get through
// is shown over transports, in tests/rpc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "inner/moved.rpc.pb.h"
#include "renamed/here/moved.rpc.pb.h"
#include "rpc/rpc.h"
#include "tests/compiler/protos/generated.rpc.pb.h"
#include "tests/compiler/protos/imported.rpc.pb.h"
#include "tests/compiler/protos/legacy.rpc.pb.h"
#include "tests/compiler/protos/lite.rpc.pb.h"
#include "tests/compiler/protos/nopackage.rpc.pb.h"
#include "tests/compiler/protos/odd.rpc.pb.h"
#include "tests/compiler/protos/odd_mock.rpc.pb.h"
#include "tests/compiler/protos/std_package.rpc.pb.h"

namespace verbena::testing::odd {
namespace {

using ::testing::_;
using ::testing::Return;
using Callback = std::function<void(::rpc::Status)>;

// Shape. A function's overload is picked by the type it is converted to.

static_assert(std::is_abstract_v<Ordinary::StubInterface>);
static_assert(std::is_base_of_v<Ordinary::StubInterface, Ordinary::Stub>);
static_assert(std::is_final_v<Ordinary::Stub>);
static_assert(std::is_base_of_v<::rpc::Service, Ordinary::Service>);
static_assert(std::is_base_of_v<Ordinary::Service, Ordinary::AsyncService>);
static_assert(std::is_base_of_v<Ordinary::Service, Ordinary::CallbackService>);
static_assert(std::is_same_v<Ordinary::CallbackService,
                             Ordinary::ExperimentalCallbackService>);
static_assert(
    std::is_same_v<Ordinary::StubInterface::async_interface,
                   Ordinary::StubInterface::experimental_async_interface>);
static_assert(std::is_same_v<decltype(&Ordinary::Stub::First),
                             ::rpc::Status (Ordinary::Stub::*)(
                                 ::rpc::ClientContext*, const Plain&, Plain*)>);
static_assert(std::is_same_v<decltype(&Ordinary::Service::First),
                             ::rpc::Status (Ordinary::Service::*)(
                                 ::rpc::ServerContext*, const Plain*, Plain*)>);
static_assert(std::is_same_v<decltype(Ordinary::NewStub(
                                 std::shared_ptr<::rpc::ChannelInterface>())),
                             std::unique_ptr<Ordinary::Stub>>);

[[maybe_unused]] constexpr void (Ordinary::Stub::async::*kWithCallback)(
    ::rpc::ClientContext*, const Plain*, Plain*,
    Callback) = &Ordinary::Stub::async::First;
[[maybe_unused]] constexpr void (Ordinary::Stub::async::*kWithReactor)(
    ::rpc::ClientContext*, const Plain*, Plain*,
    ::rpc::ClientUnaryReactor*) = &Ordinary::Stub::async::First;
[[maybe_unused]] constexpr ::rpc::ServerUnaryReactor* (
    Ordinary::CallbackService::*kCallbackForm)(::rpc::CallbackServerContext*,
                                               const Plain*, Plain*) =
    &Ordinary::CallbackService::First;

static_assert(std::string_view(Ordinary::service_full_name()) ==
              "verbena.testing.odd.Ordinary");
// The name in C++ may differ, the service's own does not.
static_assert(std::string_view(namespace_::service_full_name()) ==
              "verbena.testing.odd.namespace");

static_assert(
    std::is_same_v<decltype(&Types::Service::Nested),
                   ::rpc::Status (Types::Service::*)(
                       ::rpc::ServerContext*, const Outer::Inner*, Outer*)>);

// Use.

// A service as gRPC's users write it: one function a method, the rest left.
class SyncService final : public Ordinary::Service {
 public:
  ::rpc::Status First(::rpc::ServerContext*, const Plain* request,
                      Plain* response) override {
    response->set_number(request->number() + 1);
    return ::rpc::Status::OK;
  }
};

TEST(GeneratedCodeTest, MethodsNotImplementedSaySo) {
  SyncService service;
  Plain request, response;
  request.set_number(41);
  EXPECT_TRUE(service.First(nullptr, &request, &response).ok());
  EXPECT_EQ(response.number(), 42);
  EXPECT_EQ(service.Second(nullptr, &request, &response).error_code(),
            ::rpc::StatusCode::UNIMPLEMENTED);
}

class AllCallbacks final : public Ordinary::CallbackService {
 public:
  ::rpc::ServerUnaryReactor* First(::rpc::CallbackServerContext*, const Plain*,
                                   Plain*) override {
    ++calls;
    return nullptr;
  }
  int calls = 0;
};

TEST(GeneratedCodeTest, CallbackServicesHaveOneFunctionAMethod) {
  AllCallbacks service;
  Plain request, response;
  ::rpc::CallbackServerContext* const context = nullptr;
  EXPECT_EQ(service.First(context, &request, &response), nullptr);
  EXPECT_EQ(service.calls, 1);
}

// Callback form for one method, the blocking form for the others.
class Mixed final
    : public Ordinary::WithCallbackMethod_Second<Ordinary::Service> {
 public:
  ::rpc::Status First(::rpc::ServerContext*, const Plain*, Plain*) override {
    return ::rpc::Status::OK;
  }
  ::rpc::ServerUnaryReactor* Second(::rpc::CallbackServerContext*, const Plain*,
                                    Plain*) override {
    return nullptr;
  }
};

TEST(GeneratedCodeTest, TheFormsMixInOneService) {
  Mixed service;
  Plain message;
  EXPECT_TRUE(service
                  .First(static_cast<::rpc::ServerContext*>(nullptr), &message,
                         &message)
                  .ok());
}

class MockAsync : public Ordinary::StubInterface::async_interface {
 public:
  MOCK_METHOD(void, First,
              (::rpc::ClientContext*, const Plain*, Plain*, Callback),
              (override));
  MOCK_METHOD(void, First,
              (::rpc::ClientContext*, const Plain*, Plain*,
               ::rpc::ClientUnaryReactor*),
              (override));
  MOCK_METHOD(void, Second,
              (::rpc::ClientContext*, const Plain*, Plain*, Callback),
              (override));
  MOCK_METHOD(void, Second,
              (::rpc::ClientContext*, const Plain*, Plain*,
               ::rpc::ClientUnaryReactor*),
              (override));
  MOCK_METHOD(void, Third,
              (::rpc::ClientContext*, const Plain*, Plain*, Callback),
              (override));
  MOCK_METHOD(void, Third,
              (::rpc::ClientContext*, const Plain*, Plain*,
               ::rpc::ClientUnaryReactor*),
              (override));
};

class MockStub : public MockOrdinaryStub {
 public:
  class async_interface* async() override {
    return &async_;
  }
  MockAsync& mock_async() { return async_; }

 private:
  MockAsync async_;
};

TEST(GeneratedCodeTest, StubsCanBeMocked) {
  MockStub mock;
  Ordinary::StubInterface& stub = mock;
  EXPECT_CALL(mock, First(_, _, _))
      .WillOnce(Return(
          ::rpc::Status(::rpc::StatusCode::UNAVAILABLE, "nobody there")));
  Plain message;
  EXPECT_EQ(stub.First(nullptr, message, &message).error_message(),
            "nobody there");

  EXPECT_CALL(mock.mock_async(),
              First(_, _, _, ::testing::An<::rpc::ClientUnaryReactor*>()));
  stub.async()->First(nullptr, &message, &message,
                      static_cast<::rpc::ClientUnaryReactor*>(nullptr));
  EXPECT_EQ(stub.experimental_async(), stub.async());
}

class FakeCoro final : public Ordinary::StubInterface::coro_interface {
 public:
  ::rpc::CoroUnaryCall First(::rpc::ClientContext*, const Plain&,
                             Plain* response) override {
    response->set_number(1);
    return ::rpc::CoroUnaryCall(::rpc::Status::OK);
  }
  ::rpc::CoroUnaryCall Second(::rpc::ClientContext*, const Plain&,
                              Plain*) override {
    return ::rpc::CoroUnaryCall(
        ::rpc::Status(::rpc::StatusCode::UNAVAILABLE, "nobody there"));
  }
  ::rpc::CoroUnaryCall Third(::rpc::ClientContext*, const Plain&,
                             Plain*) override {
    return ::rpc::CoroUnaryCall(::rpc::Status::CANCELLED);
  }
};

class StubOfFakes final : public MockOrdinaryStub {
 public:
  class coro_interface* coro() override {
    return &coro_;
  }

 private:
  FakeCoro coro_;
};

TEST(GeneratedCodeTest, CallsThatAreAwaitedCanBeFaked) {
  StubOfFakes fake;
  Ordinary::StubInterface* const stub = &fake;
  ::rpc::SyncWait([](Ordinary::StubInterface* stub) -> ::rpc::Task<> {
    Plain message;
    const ::rpc::Status first =
        co_await stub->coro()->First(nullptr, message, &message);
    EXPECT_TRUE(first.ok());
    EXPECT_EQ(message.number(), 1);
    const ::rpc::Status second =
        co_await stub->coro()->Second(nullptr, message, &message);
    EXPECT_EQ(second.error_message(), "nobody there");
  }(stub));
}

// Mocks have a class for every service, whatever it is called.
static_assert(std::is_base_of_v<Names::StubInterface, MockNamesStub>);
static_assert(std::is_base_of_v<Service_::StubInterface, MockService_Stub>);
static_assert(std::is_base_of_v<Stub_::StubInterface, MockStub_Stub>);

TEST(GeneratedCodeTest, MocksOfOddServicesWork) {
  MockNamesStub names;
  EXPECT_CALL(names, delete_(_, _, _)).WillOnce(Return(::rpc::Status::OK));
  EXPECT_CALL(names, Asyncdelete_Raw(_, _, _)).WillOnce(Return(nullptr));
  Names::StubInterface& stub = names;
  Plain message;
  EXPECT_TRUE(stub.delete_(nullptr, message, &message).ok());
  EXPECT_EQ(stub.Asyncdelete_(nullptr, message, nullptr), nullptr);
  MockEmptyStub empty;
}

// Every service of every file can be made, and derived from.
template <typename... ServiceClass>
struct AllOf {
  static int Make() { return (Make<ServiceClass>() + ... + 0); }

 private:
  template <typename Class>
  static int Make() {
    typename Class::Service blocking;
    typename Class::AsyncService queued;
    typename Class::CallbackService callback;
    typename Class::CoroutineService coroutine;
    return 1;
  }
};

TEST(GeneratedCodeTest, OddServicesWork) {
  using Services =
      AllOf<Ordinary, Types, Names, Service_, Stub_, namespace_, Empty,
            PartlyDeprecated, Deprecated, ::VerbenaTestingNoPackage,
            ::verbena::testing::legacy::apart::KeyValue,
            ::verbena::testing::lite::Lite, ::verbena::testing::moved::Moved,
            ::verbena::testing::generated::Generated,
            ::verbena_shadow::std::Shadow>;
  EXPECT_EQ(Services::Make(), 15);
}

// protoc's own generic service and ours, side by side.
static_assert(!std::is_same_v<::verbena::testing::legacy::KeyValue,
                              ::verbena::testing::legacy::apart::KeyValue>);

TEST(GeneratedCodeTest, TakenNamesGetAnUnderscore) {
  Names::Service service;
  Plain message;
  ::rpc::ServerContext* const context = nullptr;
  for (const ::rpc::Status& status :
       {service.delete_(context, &message, &message),
        service.async_(context, &message, &message),
        service.coro_(context, &message, &message),
        service.Stub_(context, &message, &message),
        service.rpcmethod_0__(context, &message, &message),
        service.AddMethod(context, &message, &message),
        service.std(context, &message, &message)}) {
    EXPECT_EQ(status.error_code(), ::rpc::StatusCode::UNIMPLEMENTED);
  }
}

}  // namespace
}  // namespace verbena::testing::odd
