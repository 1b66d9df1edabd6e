// Goal: each kind of method gets each form of calls and services, of its own
// types. Method: pieces of the text that the plugin prints for a method of each
// kind. That gRPC's programs find what they expect in it is shown by
// generated_forms_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/compiler/memory_generator.h"

namespace rpc::compiler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One method of each kind.
constexpr char kKinds[] =
    "service S {\n"
    "  rpc Get(M) returns (N);\n"
    "  rpc Load(stream M) returns (N);\n"
    "  rpc Watch(M) returns (stream N);\n"
    "  rpc Chat(stream M) returns (stream N);\n"
    "}\n"
    "message N {}\n";

// Where a class starts in a header, to its end. Classes within others have the
// same name in several places; this is the first.
std::string ClassIn(const std::string& header, const std::string& name) {
  const size_t start = header.find("class " + name + " ");
  if (start == std::string::npos) {
    ADD_FAILURE() << "no class " << name;
    return "";
  }
  return header.substr(start, header.find("\n  };\n", start) - start);
}

// Blanks and line breaks as one blank, for text that may be broken anywhere.
std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\n';
    if (is_blank && !line.empty() && line.back() == ' ') continue;
    line += is_blank ? ' ' : c;
  }
  return line;
}

// That they work: tests/e2e/streams_test.
TEST(GeneratorFormsTest, StreamsAreOfTheirKinds) {
  EXPECT_THAT(
      HeaderFrom(kKinds),
      AllOf(
          HasSubstr("::rpc::ClientReader<::pkg::N>"),
          HasSubstr("virtual ::rpc::ClientReaderInterface<::pkg::N>*"),
          HasSubstr("::rpc::ServerWriter<::pkg::N>* writer"),
          HasSubstr("::rpc::ClientWriter<::pkg::M>"),
          HasSubstr("::rpc::ServerReader<::pkg::M>* reader,"),
          HasSubstr("::rpc::ClientReaderWriter<::pkg::M, ::pkg::N>"),
          HasSubstr("::rpc::ServerReaderWriter<::pkg::N, ::pkg::M>* stream")));
  EXPECT_THAT(SourceFrom(kKinds),
              AllOf(HasSubstr("RpcMethod::SERVER_STREAMING"),
                    HasSubstr("RpcMethod::CLIENT_STREAMING"),
                    HasSubstr("RpcMethod::BIDI_STREAMING")));
}

// That they make what protobuf makes: tests/rpc/message_fields_test.
TEST(GeneratorFormsTest, SimpleMessagesGoFieldByField) {
  const std::string source =
      OneLine(SourceFrom("service S { rpc Get(Simple) returns (Deep); }\n"
                         "message Deep { M inner = 1; }\n"
                         "message Simple {\n"
                         "  Color second = 2;\n"
                         "  optional string class = 1;\n"
                         "}\n"
                         "enum Color { NONE = 0; }\n"));
  EXPECT_THAT(
      source,
      AllOf(
          HasSubstr("struct FieldsOf<::pkg::Simple> {"),
          HasSubstr("if (message.has_class_()) { "
                    "writer.String(1, message.class_()); } "
                    "if (IsSet(message.second())) { "
                    "writer.Enum(2, message.second()); }"),
          HasSubstr(
              "case 10: return reader.Saw(0).String(message.mutable_class_());"
              " case 16: return message.set_second("
              "static_cast<::pkg::Color>(reader.Saw(1).Enum()));"),
          HasSubstr("kAll = 0x3u;"),
          HasSubstr("if ((seen & 0x2u) == 0) message.clear_second();"),
          HasSubstr("kMessagesOf<::pkg::Simple, ::pkg::Deep>"),
          Not(HasSubstr("FieldsOf<::pkg::Deep>")),
          Not(HasSubstr("-Wdeprecated-declarations"))));
}

// Sources of two .proto files may have the same message, and be compiled as
// one.
TEST(GeneratorFormsTest, WhatIsOfAMessageIsGuarded) {
  EXPECT_THAT(SourceFrom("service S { rpc Get(M) returns (M); }\n"),
              AllOf(HasSubstr("#ifndef VERBENA_RPC_FIELDS_2fpkg_2eM_H_\n"
                              "#define VERBENA_RPC_FIELDS_2fpkg_2eM_H_\n"
                              "template <>\n"),
                    HasSubstr("};\n"
                              "#endif  // VERBENA_RPC_FIELDS_2fpkg_2eM_H_\n")));
}

TEST(GeneratorFormsTest, DeprecatedFieldsAreUsedInSilence) {
  EXPECT_THAT(SourceFrom("service S { rpc Get(Old) returns (M); }\n"
                         "message Old { int32 n = 1 [deprecated = true]; }\n"),
              HasSubstr("#pragma GCC diagnostic ignored "
                        "\"-Wdeprecated-declarations\""));
}

TEST(GeneratorFormsTest, EveryKindHasAFormWithReactors) {
  const std::string header = HeaderFrom(kKinds);
  const std::string source = SourceFrom(kKinds);
  for (const char* reactor :
       {"::rpc::ClientUnaryReactor* reactor",
        "::rpc::ClientWriteReactor<::pkg::M>* reactor",
        "::rpc::ClientReadReactor<::pkg::N>* reactor",
        "::rpc::ClientBidiReactor<::pkg::M, ::pkg::N>* reactor"}) {
    EXPECT_THAT(header, HasSubstr(std::string(reactor) + ") = 0;"));
    EXPECT_THAT(header, HasSubstr(std::string(reactor) + ") override;"));
    EXPECT_THAT(source, HasSubstr(std::string(reactor) + ") {\n"));
  }
  EXPECT_THAT(ClassIn(header, "WithCallbackMethod_Get"),
              AllOf(HasSubstr("internal::CallbackUnaryHandler<"),
                    HasSubstr("virtual ::rpc::ServerUnaryReactor* Get("),
                    HasSubstr("void SetMessageAllocatorFor_Get(\n"),
                    HasSubstr("::rpc::MessageAllocator<::pkg::M, ::pkg::N>* "
                              "allocator) {")));
  EXPECT_THAT(
      ClassIn(header, "WithCallbackMethod_Load"),
      AllOf(HasSubstr("internal::CallbackClientStreamingHandler<"),
            HasSubstr("virtual ::rpc::ServerReadReactor<::pkg::M>* Load(")));
  EXPECT_THAT(
      ClassIn(header, "WithCallbackMethod_Watch"),
      AllOf(HasSubstr("internal::CallbackServerStreamingHandler<"),
            HasSubstr("virtual ::rpc::ServerWriteReactor<::pkg::N>* Watch(")));
  EXPECT_THAT(
      ClassIn(header, "WithCallbackMethod_Chat"),
      AllOf(HasSubstr("internal::CallbackBidiHandler<"),
            HasSubstr(
                "virtual ::rpc::ServerBidiReactor<::pkg::M, ::pkg::N>* Chat("),
            HasSubstr("return this->Chat(context);")));
}

TEST(GeneratorFormsTest, EveryKindHasAFormThatIsAwaited) {
  const std::string header = OneLine(HeaderFrom(kKinds));
  const std::string source = OneLine(SourceFrom(kKinds));
  struct Call {
    std::string result;
    std::string function;  // to its parameters' end
    std::string made;      // by the stub's function
    std::string handler_parameters;
    std::string handler;
  };
  const std::string context = "( ::rpc::ClientContext* context";
  for (const Call& call :
       {Call{"::rpc::CoroUnaryCall ",
             absl::StrCat("Get", context,
                          ", const ::pkg::M& request, ::pkg::N* response)"),
             "return ::rpc::CoroUnaryCall( stub_->channel_.get(), "
             "stub_->rpcmethod_0_, context, request, response);",
             "const ::pkg::M* /*request*/, ::pkg::N* /*response*/",
             "MarkMethodCallback( 0, new ::rpc::internal::"
             "CoroutineUnaryHandler<"},
        Call{"::std::unique_ptr< ::rpc::CoroClientWriter<::pkg::M>> ",
             absl::StrCat("Load", context, ", ::pkg::N* response)"),
             "stub_->rpcmethod_1_, context, response);",
             "::rpc::CoroServerReader<::pkg::M>* /*reader*/, "
             "::pkg::N* /*response*/",
             "MarkMethodCallback( 1, new ::rpc::internal::"
             "CoroutineClientStreamingHandler<"},
        Call{"::std::unique_ptr< ::rpc::CoroClientReader<::pkg::N>> ",
             absl::StrCat("Watch", context, ", const ::pkg::M& request)"),
             "stub_->rpcmethod_2_, context, request);",
             "const ::pkg::M* /*request*/, "
             "::rpc::CoroServerWriter<::pkg::N>* /*writer*/",
             "MarkMethodCallback( 2, new ::rpc::internal::"
             "CoroutineServerStreamingHandler<"},
        Call{"::std::unique_ptr< ::rpc::CoroClientReaderWriter<::pkg::M, "
             "::pkg::N>> ",
             absl::StrCat("Chat", context, ")"),
             "stub_->rpcmethod_3_, context);",
             "::rpc::CoroServerReaderWriter<::pkg::N, ::pkg::M>* /*stream*/",
             "MarkMethodCallback( 3, new ::rpc::internal::"
             "CoroutineBidiHandler<"}}) {
    EXPECT_THAT(header, HasSubstr(absl::StrCat("virtual ", call.result,
                                               call.function, " = 0;")));
    EXPECT_THAT(header, HasSubstr(absl::StrCat(call.result, call.function,
                                               " override;")));
    EXPECT_THAT(source, HasSubstr(absl::StrCat(call.result, "S::Stub::coro::",
                                               call.function, " {")));
    EXPECT_THAT(source, HasSubstr(call.made));
    EXPECT_THAT(header, HasSubstr(absl::StrCat("::rpc::CallbackServerContext* "
                                               "/*context*/, ",
                                               call.handler_parameters,
                                               ") { return {}", "; }")));
    EXPECT_THAT(header, HasSubstr(call.handler));
  }
}

TEST(GeneratorFormsTest, EveryKindHasAFormWithCompletionQueues) {
  const std::string header = OneLine(HeaderFrom(kKinds));
  struct Call {
    std::string name;
    std::string type;        // of the object, in Stub's functions
    std::string interface;   // and in StubInterface's
    std::string parameters;  // between the context and the queue
    std::string tag;         // where AsyncX takes one
  };
  for (const Call& call :
       {Call{"Get", "ClientAsyncResponseReader<::pkg::N>",
             "ClientAsyncResponseReaderInterface<::pkg::N>",
             "const ::pkg::M& request, ", ""},
        Call{"Load", "ClientAsyncWriter<::pkg::M>",
             "ClientAsyncWriterInterface<::pkg::M>", "::pkg::N* response, ",
             ", void* tag"},
        Call{"Watch", "ClientAsyncReader<::pkg::N>",
             "ClientAsyncReaderInterface<::pkg::N>",
             "const ::pkg::M& request, ", ", void* tag"},
        Call{"Chat", "ClientAsyncReaderWriter<::pkg::M, ::pkg::N>",
             "ClientAsyncReaderWriterInterface<::pkg::M, ::pkg::N>", "",
             ", void* tag"}}) {
    const std::string parameters =
        absl::StrCat("( ::rpc::ClientContext* context, ", call.parameters,
                     "::rpc::CompletionQueue* cq");
    const std::string started = absl::StrCat("Async", call.name);
    const std::string prepared = absl::StrCat("PrepareAsync", call.name);
    for (const std::string& type : {call.type, call.interface}) {
      const std::string owned =
          absl::StrCat("::std::unique_ptr< ::rpc::", type, "> ");
      EXPECT_THAT(header, HasSubstr(absl::StrCat(owned, started, parameters,
                                                 call.tag, ") {")));
      EXPECT_THAT(header,
                  HasSubstr(absl::StrCat(owned, prepared, parameters, ") {")));
    }
    const std::string made =
        absl::StrCat("virtual ::rpc::", call.interface, "* ");
    EXPECT_THAT(header, HasSubstr(absl::StrCat(made, started, "Raw", parameters,
                                               call.tag, ") = 0;")));
    EXPECT_THAT(header, HasSubstr(absl::StrCat(made, prepared, "Raw",
                                               parameters, ") = 0;")));
  }
}

TEST(GeneratorFormsTest, CallsWithCompletionQueuesStartAtOnceOrLater) {
  const std::string source = OneLine(SourceFrom(kKinds));
  // A unary call's start has no event.
  EXPECT_THAT(source,
              AllOf(HasSubstr("PrepareAsyncGetRaw(context, request, cq); "
                              "call->StartCall(); return call;"),
                    HasSubstr("ClientAsyncResponseReaderFactory< "
                              "::pkg::N>::Create( channel_.get(), cq, "
                              "rpcmethod_0_, context, request);")));
  EXPECT_THAT(source,
              AllOf(HasSubstr("rpcmethod_1_, context, response, true, tag);"),
                    HasSubstr("rpcmethod_1_, context, response, false, "
                              "nullptr);"),
                    HasSubstr("rpcmethod_3_, context, true, tag);"),
                    HasSubstr("rpcmethod_3_, context, false, nullptr);")));
}

TEST(GeneratorFormsTest, ServersAskForCallsOfEachKind) {
  const std::string header = HeaderFrom(kKinds);
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithAsyncMethod_Get")),
      AllOf(HasSubstr("::rpc::Service::MarkMethodAsync(0);"),
            HasSubstr("void RequestGet( ::rpc::ServerContext* context, "
                      "::pkg::M* request, "
                      "::rpc::ServerAsyncResponseWriter<::pkg::N>* response, "
                      "::rpc::CompletionQueue* new_call_cq, "
                      "::rpc::ServerCompletionQueue* notification_cq, "
                      "void* tag) {"),
            HasSubstr("::rpc::Service::RequestAsyncUnary( 0, context, request, "
                      "response, new_call_cq, notification_cq, tag);")));
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithAsyncMethod_Load")),
      AllOf(HasSubstr("::rpc::ServerAsyncReader<::pkg::N, ::pkg::M>* reader, "
                      "::rpc::CompletionQueue* new_call_cq"),
            HasSubstr("RequestAsyncClientStreaming( 1, context, reader, new")));
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithAsyncMethod_Watch")),
      AllOf(HasSubstr("::pkg::M* request, ::rpc::ServerAsyncWriter<::pkg::N>* "
                      "writer, ::rpc::CompletionQueue* new_call_cq"),
            HasSubstr("RequestAsyncServerStreaming( 2, context, request, "
                      "writer, new")));
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithAsyncMethod_Chat")),
      AllOf(HasSubstr("::rpc::ServerAsyncReaderWriter<::pkg::N, ::pkg::M>* "
                      "stream, ::rpc::CompletionQueue* new_call_cq"),
            HasSubstr("RequestAsyncBidiStreaming( 3, context, stream, new")));
}

TEST(GeneratorFormsTest, RawFormsAreThoseOfBytes) {
  const std::string header = HeaderFrom(kKinds);
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithRawMethod_Get")),
      AllOf(HasSubstr("::rpc::Service::MarkMethodRaw(0);"),
            // What is replaced keeps its messages.
            HasSubstr("const ::pkg::M* /*request*/, ::pkg::N* /*response*/) "
                      "override"),
            HasSubstr("void RequestGet( ::rpc::ServerContext* context, "
                      "::rpc::ByteBuffer* request, "
                      "::rpc::ServerAsyncResponseWriter<::rpc::ByteBuffer>* "
                      "response, ::rpc::CompletionQueue* new_call_cq")));
  EXPECT_THAT(OneLine(ClassIn(header, "WithRawMethod_Chat")),
              HasSubstr("void RequestChat( ::rpc::ServerContext* context, "
                        "::rpc::ServerAsyncReaderWriter<::rpc::ByteBuffer, "
                        "::rpc::ByteBuffer>* stream, "));
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithRawCallbackMethod_Watch")),
      AllOf(HasSubstr("::rpc::Service::MarkMethodRawCallback( 2, new "
                      "::rpc::internal::CallbackServerStreamingHandler< "
                      "::rpc::ByteBuffer, ::rpc::ByteBuffer>("),
            HasSubstr("const ::pkg::M* /*request*/, "
                      "::rpc::ServerWriter<::pkg::N>* /*writer*/) override"),
            HasSubstr("virtual ::rpc::ServerWriteReactor<::rpc::ByteBuffer>* "
                      "Watch( ::rpc::CallbackServerContext* /*context*/, "
                      "const ::rpc::ByteBuffer* /*request*/) {")));
}

TEST(GeneratorFormsTest, GenericFormsLeaveTheCallToTheServer) {
  EXPECT_THAT(ClassIn(HeaderFrom(kKinds), "WithGenericMethod_Load"),
              AllOf(HasSubstr("::rpc::Service::MarkMethodGeneric(1);"),
                    HasSubstr("::std::abort();"), Not(HasSubstr("virtual")),
                    Not(HasSubstr("void "))));
}

TEST(GeneratorFormsTest, StreamedFormsAreThoseOfOneRequest) {
  const std::string header = HeaderFrom(kKinds);
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithStreamedUnaryMethod_Get")),
      AllOf(HasSubstr("::rpc::Service::MarkMethodStreamed( 0, new "
                      "::rpc::internal::StreamedUnaryHandler< ::pkg::M, "
                      "::pkg::N>("),
            HasSubstr("return this->StreamedGet("),
            HasSubstr("virtual ::rpc::Status StreamedGet( "
                      "::rpc::ServerContext* context, "
                      "::rpc::ServerUnaryStreamer<::pkg::M, ::pkg::N>* "
                      "server_unary_streamer) = 0;")));
  EXPECT_THAT(
      OneLine(ClassIn(header, "WithSplitStreamingMethod_Watch")),
      AllOf(HasSubstr("::rpc::Service::MarkMethodStreamed( 2, new "
                      "::rpc::internal::SplitServerStreamingHandler< ::pkg::M, "
                      "::pkg::N>("),
            HasSubstr("virtual ::rpc::Status StreamedWatch( "
                      "::rpc::ServerContext* context, "
                      "::rpc::ServerSplitStreamer<::pkg::M, ::pkg::N>* "
                      "server_split_streamer) = 0;")));
  EXPECT_THAT(header, AllOf(Not(HasSubstr("StreamedLoad")),
                            Not(HasSubstr("StreamedChat")),
                            Not(HasSubstr("WithStreamedUnaryMethod_Watch")),
                            Not(HasSubstr("WithSplitStreamingMethod_Get"))));
}

TEST(GeneratorFormsTest, ServicesInAnotherFormNestTheirMethodsInOrder) {
  const std::string header = OneLine(HeaderFrom(kKinds));
  for (const std::string form : {"Async", "Callback", "Coroutine"}) {
    const std::string family = absl::StrCat("With", form, "Method_");
    EXPECT_THAT(header, HasSubstr(absl::StrCat(
                            "typedef ", family, "Get< ", family, "Load< ",
                            family, "Watch< ", family, "Chat< Service>>>> ",
                            form, "Service;")));
  }
  EXPECT_THAT(
      header,
      AllOf(HasSubstr("typedef WithStreamedUnaryMethod_Get< Service> "
                      "StreamedUnaryService;"),
            HasSubstr("typedef WithSplitStreamingMethod_Watch< Service> "
                      "SplitStreamedService;"),
            HasSubstr("typedef WithStreamedUnaryMethod_Get< "
                      "WithSplitStreamingMethod_Watch< Service>> "
                      "StreamedService;")));
}

TEST(GeneratorFormsTest, ServicesWithoutMethodsHaveTheFormsOfService) {
  const std::string header = OneLine(HeaderFrom("service Empty {}"));
  for (const std::string name :
       {"AsyncService", "CallbackService", "CoroutineService",
        "StreamedUnaryService", "SplitStreamedService", "StreamedService"}) {
    EXPECT_THAT(header, HasSubstr("typedef Service " + name + ";"));
  }
}

TEST(GeneratorFormsTest, MocksHaveTheVirtualFunctionsOfStubs) {
  const std::string mocks =
      OneLine(Content(GenerateFrom(kKinds, "generate_mock_code=true"),
                      "dir/foo_mock.rpc.pb.h"));
  EXPECT_THAT(
      mocks,
      AllOf(HasSubstr("MOCK_METHOD( (::rpc::Status), Get, "
                      "(::rpc::ClientContext* context, const ::pkg::M& "
                      "request, ::pkg::N* response), (override));"),
            HasSubstr("MOCK_METHOD( "
                      "(::rpc::ClientAsyncResponseReaderInterface<::pkg::N>*), "
                      "PrepareAsyncGetRaw, "),
            HasSubstr("MOCK_METHOD( "
                      "(::rpc::ClientReaderWriterInterface<::pkg::M, "
                      "::pkg::N>*), ChatRaw, (::rpc::ClientContext* context), "
                      "(override));"),
            HasSubstr(", AsyncLoadRaw, (::rpc::ClientContext* context, "
                      "::pkg::N* response, ::rpc::CompletionQueue* cq, void* "
                      "tag), (override));"),
            Not(HasSubstr("AsyncWatch,"))));
}

}  // namespace
}  // namespace rpc::compiler
