// Goal: every kind of method has every form that gRPC C++ 1.51 generates, under
// the same names and with the same types. Method: static_assert on each
// function of a service with a method of each kind; the service's forms are
// made and used. That calls get through is shown over transports, in tests/rpc.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <type_traits>

#include "rpc/rpc.h"
#include "tests/compiler/protos/kinds.rpc.pb.h"

namespace verbena::testing::kinds {
namespace {

using ::rpc::ByteBuffer;
using ::rpc::CallbackServerContext;
using ::rpc::ClientContext;
using ::rpc::CompletionQueue;
using ::rpc::ServerCompletionQueue;
using ::rpc::ServerContext;
using ::rpc::Status;
using ::std::unique_ptr;

// Whether one of the functions, which may be overloads of a name, has the type.
// It does not compile otherwise.
template <typename Function, typename Class>
constexpr bool Has(Function Class::*) {
  return true;
}

// Calls that block. StubInterface and Stub differ in what they hand out.

using Interface = Kinds::StubInterface;
using Stub = Kinds::Stub;

template <typename StubClass, typename Writer, typename Reader,
          typename ReaderWriter>
constexpr bool HasBlockingForms() {
  return Has<Status(ClientContext*, const Request&, Response*)>(
             &StubClass::Unary) &&
         Has<unique_ptr<Writer>(ClientContext*, Response*)>(&StubClass::Up) &&
         Has<unique_ptr<Reader>(ClientContext*, const Request&)>(
             &StubClass::Down) &&
         Has<unique_ptr<ReaderWriter>(ClientContext*)>(&StubClass::Both);
}
static_assert(
    HasBlockingForms<Interface, ::rpc::ClientWriterInterface<Request>,
                     ::rpc::ClientReaderInterface<Response>,
                     ::rpc::ClientReaderWriterInterface<Request, Response>>());
static_assert(HasBlockingForms<Stub, ::rpc::ClientWriter<Request>,
                               ::rpc::ClientReader<Response>,
                               ::rpc::ClientReaderWriter<Request, Response>>());

static_assert(Has<Status(ServerContext*, const Request*, Response*)>(
    &Kinds::Service::Unary));
static_assert(Has<Status(ServerContext*, ::rpc::ServerReader<Request>*,
                         Response*)>(&Kinds::Service::Up));
static_assert(
    Has<Status(ServerContext*, const Request*, ::rpc::ServerWriter<Response>*)>(
        &Kinds::Service::Down));
static_assert(
    Has<Status(ServerContext*, ::rpc::ServerReaderWriter<Response, Request>*)>(
        &Kinds::Service::Both));

// Calls with reactors.

template <typename Async>
constexpr bool HasReactorForms() {
  return Has<void(ClientContext*, const Request*, Response*,
                  std::function<void(Status)>)>(&Async::Unary) &&
         Has<void(ClientContext*, const Request*, Response*,
                  ::rpc::ClientUnaryReactor*)>(&Async::Unary) &&
         Has<void(ClientContext*, Response*,
                  ::rpc::ClientWriteReactor<Request>*)>(&Async::Up) &&
         Has<void(ClientContext*, const Request*,
                  ::rpc::ClientReadReactor<Response>*)>(&Async::Down) &&
         Has<void(ClientContext*,
                  ::rpc::ClientBidiReactor<Request, Response>*)>(&Async::Both);
}
static_assert(HasReactorForms<class Interface::async_interface>());
static_assert(HasReactorForms<class Stub::async>());

static_assert(
    Has<::rpc::ServerUnaryReactor*(CallbackServerContext*, const Request*,
                                   Response*)>(&Kinds::CallbackService::Unary));
static_assert(
    Has<::rpc::ServerReadReactor<Request>*(CallbackServerContext*, Response*)>(
        &Kinds::WithCallbackMethod_Up<Kinds::Service>::Up));
static_assert(Has<::rpc::ServerWriteReactor<Response>*(CallbackServerContext*,
                                                       const Request*)>(
    &Kinds::WithCallbackMethod_Down<Kinds::Service>::Down));
static_assert(
    Has<::rpc::ServerBidiReactor<Request, Response>*(CallbackServerContext*)>(
        &Kinds::WithCallbackMethod_Both<Kinds::Service>::Both));

// Calls that coroutines await, and coroutines that serve them. Verbena's own.

template <typename Coro>
constexpr bool HasCoroutineForms() {
  return Has<::rpc::CoroUnaryCall(ClientContext*, const Request&, Response*)>(
             &Coro::Unary) &&
         Has<unique_ptr<::rpc::CoroClientWriter<Request>>(
             ClientContext*, Response*)>(&Coro::Up) &&
         Has<unique_ptr<::rpc::CoroClientReader<Response>>(
             ClientContext*, const Request&)>(&Coro::Down) &&
         Has<unique_ptr<::rpc::CoroClientReaderWriter<Request, Response>>(
             ClientContext*)>(&Coro::Both);
}
static_assert(HasCoroutineForms<class Interface::coro_interface>());
static_assert(HasCoroutineForms<class Stub::coro>());

static_assert(
    Has<::rpc::Task<Status>(CallbackServerContext*, const Request*, Response*)>(
        &Kinds::CoroutineService::Unary));
static_assert(
    Has<::rpc::Task<Status>(CallbackServerContext*,
                            ::rpc::CoroServerReader<Request>*, Response*)>(
        &Kinds::WithCoroutineMethod_Up<Kinds::Service>::Up));
static_assert(Has<::rpc::Task<Status>(CallbackServerContext*, const Request*,
                                      ::rpc::CoroServerWriter<Response>*)>(
    &Kinds::WithCoroutineMethod_Down<Kinds::Service>::Down));
static_assert(
    Has<::rpc::Task<Status>(CallbackServerContext*,
                            ::rpc::CoroServerReaderWriter<Response, Request>*)>(
        &Kinds::WithCoroutineMethod_Both<Kinds::Service>::Both));

// Calls with completion queues.

template <typename StubClass, typename UnaryCall, typename Writer,
          typename Reader, typename ReaderWriter>
constexpr bool HasQueuedForms() {
  return Has<unique_ptr<UnaryCall>(ClientContext*, const Request&,
                                   CompletionQueue*)>(&StubClass::AsyncUnary) &&
         Has<unique_ptr<UnaryCall>(ClientContext*, const Request&,
                                   CompletionQueue*)>(
             &StubClass::PrepareAsyncUnary) &&
         Has<unique_ptr<Writer>(ClientContext*, Response*, CompletionQueue*,
                                void*)>(&StubClass::AsyncUp) &&
         Has<unique_ptr<Writer>(ClientContext*, Response*, CompletionQueue*)>(
             &StubClass::PrepareAsyncUp) &&
         Has<unique_ptr<Reader>(ClientContext*, const Request&,
                                CompletionQueue*, void*)>(
             &StubClass::AsyncDown) &&
         Has<unique_ptr<Reader>(ClientContext*, const Request&,
                                CompletionQueue*)>(
             &StubClass::PrepareAsyncDown) &&
         Has<unique_ptr<ReaderWriter>(ClientContext*, CompletionQueue*, void*)>(
             &StubClass::AsyncBoth) &&
         Has<unique_ptr<ReaderWriter>(ClientContext*, CompletionQueue*)>(
             &StubClass::PrepareAsyncBoth);
}
static_assert(HasQueuedForms<
              Interface, ::rpc::ClientAsyncResponseReaderInterface<Response>,
              ::rpc::ClientAsyncWriterInterface<Request>,
              ::rpc::ClientAsyncReaderInterface<Response>,
              ::rpc::ClientAsyncReaderWriterInterface<Request, Response>>());
static_assert(
    HasQueuedForms<Stub, ::rpc::ClientAsyncResponseReader<Response>,
                   ::rpc::ClientAsyncWriter<Request>,
                   ::rpc::ClientAsyncReader<Response>,
                   ::rpc::ClientAsyncReaderWriter<Request, Response>>());

static_assert(Has<void(ServerContext*, Request*,
                       ::rpc::ServerAsyncResponseWriter<Response>*,
                       CompletionQueue*, ServerCompletionQueue*, void*)>(
    &Kinds::AsyncService::RequestUnary));
static_assert(
    Has<void(ServerContext*, ::rpc::ServerAsyncReader<Response, Request>*,
             CompletionQueue*, ServerCompletionQueue*, void*)>(
        &Kinds::AsyncService::RequestUp));
static_assert(
    Has<void(ServerContext*, Request*, ::rpc::ServerAsyncWriter<Response>*,
             CompletionQueue*, ServerCompletionQueue*, void*)>(
        &Kinds::AsyncService::RequestDown));
static_assert(
    Has<void(ServerContext*, ::rpc::ServerAsyncReaderWriter<Response, Request>*,
             CompletionQueue*, ServerCompletionQueue*, void*)>(
        &Kinds::AsyncService::RequestBoth));

// Messages as bytes.

static_assert(Has<void(ServerContext*, ByteBuffer*,
                       ::rpc::ServerAsyncResponseWriter<ByteBuffer>*,
                       CompletionQueue*, ServerCompletionQueue*, void*)>(
    &Kinds::WithRawMethod_Unary<Kinds::Service>::RequestUnary));
static_assert(
    Has<void(ServerContext*, ::rpc::ServerAsyncReader<ByteBuffer, ByteBuffer>*,
             CompletionQueue*, ServerCompletionQueue*, void*)>(
        &Kinds::WithRawMethod_Up<Kinds::Service>::RequestUp));
static_assert(
    Has<void(ServerContext*, ByteBuffer*, ::rpc::ServerAsyncWriter<ByteBuffer>*,
             CompletionQueue*, ServerCompletionQueue*, void*)>(
        &Kinds::WithRawMethod_Down<Kinds::Service>::RequestDown));
static_assert(Has<void(ServerContext*,
                       ::rpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer>*,
                       CompletionQueue*, ServerCompletionQueue*, void*)>(
    &Kinds::WithRawMethod_Both<Kinds::Service>::RequestBoth));

using RawService = Kinds::WithRawCallbackMethod_Unary<
    Kinds::WithRawCallbackMethod_Up<Kinds::WithRawCallbackMethod_Down<
        Kinds::WithRawCallbackMethod_Both<Kinds::Service>>>>;
static_assert(
    Has<::rpc::ServerUnaryReactor*(CallbackServerContext*, const ByteBuffer*,
                                   ByteBuffer*)>(&RawService::Unary));
static_assert(Has<::rpc::ServerReadReactor<ByteBuffer>*(
                  CallbackServerContext*, ByteBuffer*)>(&RawService::Up));
static_assert(Has<::rpc::ServerWriteReactor<ByteBuffer>*(CallbackServerContext*,
                                                         const ByteBuffer*)>(
    &RawService::Down));
static_assert(Has<::rpc::ServerBidiReactor<ByteBuffer, ByteBuffer>*(
                  CallbackServerContext*)>(&RawService::Both));

// One message as a stream.

static_assert(
    std::is_same_v<Kinds::StreamedUnaryService,
                   Kinds::WithStreamedUnaryMethod_Unary<Kinds::Service>>);
static_assert(
    std::is_same_v<Kinds::SplitStreamedService,
                   Kinds::WithSplitStreamingMethod_Down<Kinds::Service>>);
static_assert(
    std::is_same_v<Kinds::StreamedService,
                   Kinds::WithStreamedUnaryMethod_Unary<
                       Kinds::WithSplitStreamingMethod_Down<Kinds::Service>>>);
static_assert(std::is_abstract_v<Kinds::StreamedUnaryService>);
static_assert(std::is_abstract_v<Kinds::SplitStreamedService>);
static_assert(
    Has<Status(ServerContext*, ::rpc::ServerUnaryStreamer<Request, Response>*)>(
        &Kinds::StreamedService::StreamedUnary));
static_assert(
    Has<Status(ServerContext*, ::rpc::ServerSplitStreamer<Request, Response>*)>(
        &Kinds::StreamedService::StreamedDown));

// Services.

class Streamed final : public Kinds::StreamedService {
 public:
  Status StreamedUnary(
      ServerContext*, ::rpc::ServerUnaryStreamer<Request, Response>*) override {
    return Status::OK;
  }
  Status StreamedDown(ServerContext*,
                      ::rpc::ServerSplitStreamer<Request, Response>*) override {
    return Status::OK;
  }
};

template <typename Form>
void ExpectUpBlocks() {
  Form service;
  ServerContext* const context = nullptr;
  Response response;
  EXPECT_EQ(service.Up(context, nullptr, &response).error_code(),
            ::rpc::StatusCode::UNIMPLEMENTED);
}

TEST(GeneratedFormsTest, MethodsThatAreNotReplacedStillBlock) {
  ExpectUpBlocks<Kinds::Service>();
  ExpectUpBlocks<Streamed>();
  ExpectUpBlocks<Kinds::WithCallbackMethod_Unary<Kinds::WithAsyncMethod_Down<
      Kinds::WithGenericMethod_Both<Kinds::Service>>>>();
  ExpectUpBlocks<Kinds::WithRawCallbackMethod_Both<Kinds::WithRawMethod_Unary<
      Kinds::WithGenericMethod_Down<Kinds::Service>>>>();
  ExpectUpBlocks<Kinds::WithCoroutineMethod_Unary<
      Kinds::WithCallbackMethod_Both<Kinds::Service>>>();
}

template <typename Service, typename In, typename Out>
void ExpectNoReactors() {
  Service service;
  CallbackServerContext* const context = nullptr;
  In request;
  Out response;
  EXPECT_EQ(service.Unary(context, &request, &response), nullptr);
  EXPECT_EQ(service.Up(context, &response), nullptr);
  EXPECT_EQ(service.Down(context, &request), nullptr);
  EXPECT_EQ(service.Both(context), nullptr);
}

TEST(GeneratedFormsTest, ReactorsAreNullUnlessSomebodyGivesThem) {
  ExpectNoReactors<Kinds::CallbackService, Request, Response>();
  ExpectNoReactors<RawService, ByteBuffer, ByteBuffer>();
}

TEST(GeneratedFormsTest, CoroutinesAreNoneUnlessSomebodyGivesThem) {
  Kinds::CoroutineService service;
  CallbackServerContext* const context = nullptr;
  Request request;
  Response response;
  EXPECT_FALSE(service.Unary(context, &request, &response));
  EXPECT_FALSE(service.Up(context, nullptr, &response));
  EXPECT_FALSE(service.Down(context, &request, nullptr));
  EXPECT_FALSE(service.Both(context, nullptr));
}

}  // namespace
}  // namespace verbena::testing::kinds
