// Goal: rpc_cli lists, describes and calls what a server has, as its help says,
// with exit statuses and errors that help.
// Method: servers in this process, on the software device; rpc_cli as a process
// of its own.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/kv/subprocess.h"
#include "tests/tools/sample.rpc.pb.h"
#include "tests/tools/sample_service.h"

namespace tools {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using kv::ProcessResult;
using kv::Subprocess;

constexpr char kProgram[] = "tools/rpc_cli/rpc_cli";
// Of one run, so that a test that fails ends.
constexpr absl::Duration kTime = absl::Minutes(1);

class RpcCliTest : public testing::Test {
 protected:
  struct Endpoint {
    std::unique_ptr<rpc::Server> server;
    std::string address;
  };

  // Reflection is a matter of the process: the first two have none of ours.
  static void SetUpTestSuite() {
    plain_ = new Endpoint(Build({&Sample()}));
    static OldReflectionService old_reflection;
    old_ = new Endpoint(Build({&Sample(), &old_reflection}));
    rpc::reflection::InitProtoReflectionServerBuilderPlugin();
    static sample::Spare::Service spare;
    server_ = new Endpoint(Build({&Sample(), &spare}));
  }
  static void TearDownTestSuite() {
    delete server_;
    delete old_;
    delete plain_;
  }

  static SampleService& Sample() {
    static SampleService service;
    return service;
  }

  static Endpoint Build(const std::vector<rpc::Service*>& services) {
    int port = 0;
    rpc::ServerBuilder builder;
    builder.AddListeningPort("rdma://127.0.0.1:0",
                             rpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument("verbena.device", "soft");
    for (rpc::Service* service : services) builder.RegisterService(service);
    std::unique_ptr<rpc::Server> server = builder.BuildAndStart();
    EXPECT_NE(server, nullptr);
    return {std::move(server), absl::StrCat("127.0.0.1:", port)};
  }

  static std::vector<std::string> Command(std::vector<std::string> words) {
    words.insert(words.begin(), kProgram);
    return words;
  }
  static ProcessResult Run(const std::vector<std::string>& words,
                           std::string_view input = "") {
    return kv::RunProcess(Command(words), input);
  }
  static ProcessResult List(const std::vector<std::string>& more = {}) {
    return Run(Words("list", more));
  }
  static ProcessResult Describe(const std::vector<std::string>& more = {}) {
    return Run(Words("describe", more));
  }
  // One line a message.
  static ProcessResult Call(const std::vector<std::string>& more,
                            std::string_view input = "") {
    return kv::RunProcess(CallCommand(more), input);
  }
  static std::vector<std::string> CallCommand(std::vector<std::string> more) {
    more.push_back("-compact");
    return Command(Words("call", more));
  }
  static std::vector<std::string> Words(const std::string& command,
                                        const std::vector<std::string>& more) {
    std::vector<std::string> words = {command, server_->address};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static inline Endpoint* plain_ = nullptr;
  static inline Endpoint* old_ = nullptr;
  static inline Endpoint* server_ = nullptr;
};

void ExpectOutput(const ProcessResult& done, const std::string& output) {
  EXPECT_EQ(done.exit_status, 0) << done.err;
  EXPECT_EQ(done.out, output);
  EXPECT_EQ(done.err, "");
}

// `output`: what came before.
template <class Matcher>
void ExpectFailure(const ProcessResult& done, int status, Matcher error,
                   const std::string& output = "") {
  EXPECT_EQ(done.exit_status, status) << done.err;
  EXPECT_EQ(done.out, output);
  EXPECT_THAT(done.err, StartsWith("rpc_cli: "));
  EXPECT_THAT(done.err, EndsWith("\n"));
  EXPECT_THAT(done.err, error);
}

// ---- list ----

TEST_F(RpcCliTest, ListsServicesSorted) {
  ExpectOutput(List(),
               "grpc.reflection.v1.ServerReflection\n"
               "grpc.reflection.v1alpha.ServerReflection\n"
               "sample.Sample\n"
               "sample.Spare\n");
}

TEST_F(RpcCliTest, ListsMethodsAsTheyAreCalled) {
  ExpectOutput(List({"sample.Sample"}),
               "sample.Sample/Echo\n"
               "sample.Sample/Wait\n"
               "sample.Sample/Count\n"
               "sample.Sample/Join\n"
               "sample.Sample/Chat\n");
}

TEST_F(RpcCliTest, UnknownServicesBringThoseThatAreNear) {
  ExpectFailure(
      List({"sample.Sampel"}), 1,
      AllOf(HasSubstr("no service 'sample.Sampel'; near it: sample.Sample"),
            Not(HasSubstr("Reflection"))));
  ExpectFailure(List({"sample"}), 1, HasSubstr("near it: sample.Sample"));
  ExpectFailure(List({"quite.Different"}), 1,
                HasSubstr("there is: grpc.reflection.v1.ServerReflection, "));
}

// ---- describe ----

TEST_F(RpcCliTest, DescribesAServiceAsInAProtoFile) {
  const std::string text =
      "sample.Spare is a service:\n"
      "service Spare {\n"
      "  rpc Echo(.sample.Note) returns (.sample.Note);\n"
      "}\n";
  ExpectOutput(Describe({"sample.Spare"}), text);
  const ProcessResult all = Describe();
  EXPECT_EQ(all.exit_status, 0);
  EXPECT_THAT(all.out, HasSubstr(text));
  EXPECT_THAT(all.out, HasSubstr("sample.Sample is a service:\n"));
  EXPECT_THAT(all.out, HasSubstr("rpc Chat(stream .sample.Note) returns "
                                 "(stream .sample.Note);\n"));
}

TEST_F(RpcCliTest, DescribesSymbolsOfEveryKind) {
  const ProcessResult message = Describe({"sample.Note"});
  EXPECT_THAT(message.out, StartsWith("sample.Note is a message:\n"));
  EXPECT_THAT(message.out, HasSubstr("  int64 number = 2;\n"));
  // As describe itself writes types.
  ExpectOutput(Describe({".sample.Note"}), message.out);

  const std::string method =
      "sample.Sample.Join is a method:\n"
      "rpc Join(stream .sample.Note) returns (.sample.Note);\n";
  for (const char* name :
       {"sample.Sample.Join", "sample.Sample/Join", "/sample.Sample/Join"}) {
    ExpectOutput(Describe({name}), method);
  }
  EXPECT_THAT(Describe({"sample.Note.Kind"}).out,
              StartsWith("sample.Note.Kind is an enumeration:\n"));
  EXPECT_THAT(Describe({"sample.Note.LOUD"}).out,
              StartsWith("sample.Note.LOUD is a value:\n"));
  EXPECT_THAT(Describe({"sample.Note.tags"}).out,
              HasSubstr("repeated string tags = 5;\n"));
  // Of a file that the server's own import.
  EXPECT_THAT(Describe({"google.protobuf.Timestamp"}).out,
              HasSubstr("int64 seconds = 1;\n"));
}

TEST_F(RpcCliTest, UnknownSymbolsBringThoseThatAreNear) {
  ExpectFailure(
      Describe({"sample.Not"}), 1,
      HasSubstr("there is no symbol 'sample.Not'; near it: sample.Note"));
  ExpectFailure(Describe({"Wiat"}), 1,
                HasSubstr("near it: sample.Sample.Wait"));
}

// ---- call ----

TEST_F(RpcCliTest, CallsByEachFormOfTheName) {
  for (const char* name :
       {"sample.Sample/Echo", "sample.Sample.Echo", "/sample.Sample/Echo"}) {
    ExpectOutput(Call({name, "-d", R"({"text": "hi"})"}),
                 "{\"text\":\"hi\"}\n");
  }
}

TEST_F(RpcCliTest, FieldsOfAllKindsGoThereAndBack) {
  const std::string json =
      R"({"text":"ü","number":"-5","data":"AAEC","kind":"LOUD",)"
      R"("tags":["a","b"],"counts":{"x":1},"time":"2026-01-02T03:04:05Z",)"
      R"("extra":{"@type":"type.googleapis.com/sample.Note","number":"7"}})";
  ExpectOutput(Call({"sample.Sample/Echo", "-d", json}), json + "\n");
}

TEST_F(RpcCliTest, AMessageIsSpreadOverLinesUnlessCompact) {
  ExpectOutput(Run(Words("call", {"sample.Sample/Echo", "-d",
                                  R"({"text":"a","tags":["b"]})"})),
               "{\n \"text\": \"a\",\n \"tags\": [\n  \"b\"\n ]\n}\n");
}

TEST_F(RpcCliTest, WithoutDataTheMessageIsEmpty) {
  ExpectOutput(Call({"sample.Sample/Echo"}, "{\"text\": \"not read\"}"),
               "{}\n");
  ExpectOutput(Call({"sample.Sample/Echo", "-emit-defaults"}),
               R"({"text":"","number":"0","data":"","kind":"PLAIN","tags":[],)"
               R"("counts":{},"code":0})"
               "\n");
}

TEST_F(RpcCliTest, DataCanBeStandardInput) {
  ExpectOutput(Call({"sample.Sample/Echo", "-d", "@"}, "{\"text\": \"in\"}\n"),
               "{\"text\":\"in\"}\n");
}

TEST_F(RpcCliTest, LargeMessagesGoThereAndBack) {
  const std::string json =
      absl::StrCat("{\"text\":\"", std::string(5 << 20, 'x'), "\"}");
  const ProcessResult done = Call({"sample.Sample/Echo", "-d", "@"}, json);
  EXPECT_EQ(done.exit_status, 0) << done.err;
  EXPECT_TRUE(done.out == json + "\n") << done.out.size();
}

TEST_F(RpcCliTest, AServersStreamIsAMessageALine) {
  ExpectOutput(Call({"sample.Sample/Count", "-d", R"({"number": 3})"}),
               "{\"number\":\"1\"}\n{\"number\":\"2\"}\n{\"number\":\"3\"}\n");
  ExpectOutput(Call({"sample.Sample/Count"}), "");
}

TEST_F(RpcCliTest, AClientsStreamIsOneObjectAfterTheOther) {
  const std::string three = R"({"text":"a"}{"text":"b"} {"text":"c"})";
  const std::string joined = "{\"text\":\"abc\",\"number\":\"3\"}\n";
  ExpectOutput(Call({"sample.Sample/Join", "-d", three}), joined);
  ExpectOutput(Call({"sample.Sample/Join", "-d", "@"}, three), joined);
  ExpectOutput(Call({"sample.Sample/Join"}, three), joined);
  ExpectOutput(Call({"sample.Sample/Join", "-d", ""}, three), "{}\n");
}

TEST_F(RpcCliTest, BothSidesOfAStreamTakeTurnsWhileInputIsOpen) {
  Subprocess chat(CallCommand({"sample.Sample/Chat"}), Subprocess::OpenInput());
  chat.Write(R"({"text": "one"} {"text": )");
  EXPECT_EQ(chat.ReadLine(kTime), R"({"text":"one"})");
  chat.Write(R"("two"})");
  EXPECT_EQ(chat.ReadLine(kTime), R"({"text":"two"})");
  chat.CloseInput();
  ExpectOutput(chat.Finish(kTime), "");
}

TEST_F(RpcCliTest, ItEndsWithTheCallAlsoWhileInputIsOpen) {
  for (const char* method : {"sample.Sample/Chat", "sample.Sample/Join"}) {
    Subprocess call(CallCommand({method}), Subprocess::OpenInput());
    call.Write(R"({"code": 10})");
    ExpectFailure(call.Finish(kTime), 64 + 10,
                  HasSubstr("ABORTED: asked for 10"));
  }
}

// ---- Input that does not fit ----

TEST_F(RpcCliTest, BadDataIsNotSentAndTheErrorSaysWhere) {
  const auto echo = [](const std::string& data) {
    return Call({"sample.Sample/Echo", "-d", data});
  };
  ExpectFailure(echo("{\"text\": 1e"), 1,
                HasSubstr("the input ends within message 1"));
  ExpectFailure(echo("nonsense"), 1,
                HasSubstr("message 1 of the input is no sample.Note: "));
  ExpectFailure(echo("{\"txet\": \"a\"}"), 1, HasSubstr("txet"));
  ExpectFailure(echo("{\"number\": \"many\"}"), 1, HasSubstr("number"));
  ExpectFailure(echo("{} {}"), 1,
                HasSubstr("takes one message, and the input has more"));
}

TEST_F(RpcCliTest, BadDataWithinAStreamEndsTheCall) {
  Subprocess chat(CallCommand({"sample.Sample/Chat"}), Subprocess::OpenInput());
  chat.Write("{\"text\":\"good\"}");
  EXPECT_EQ(chat.ReadLine(kTime), R"({"text":"good"})");
  chat.Write("{\"text\":\"bad\"");
  chat.CloseInput();
  ExpectFailure(chat.Finish(kTime), 1, HasSubstr("ends within message 2"));

  ExpectFailure(Call({"sample.Sample/Join"}, "{} {\"txet\":\"a\"} {}"), 1,
                AllOf(HasSubstr("message 2 of the input"), HasSubstr("txet")));
}

TEST_F(RpcCliTest, UnknownMethodsBringThoseThatAreNear) {
  ExpectFailure(Call({"sample.Sample/Ecko"}), 1,
                HasSubstr("no method of sample.Sample 'Ecko'; near it: Echo"));
  ExpectFailure(Call({"sample.Sample.Zzzzzz"}), 1,
                HasSubstr("'Zzzzzz'; there is: Echo, Wait, Count, Join, Chat"));
  ExpectFailure(Call({"samples.Sample/Echo"}), 1,
                HasSubstr("no service 'samples.Sample'; near it: "
                          "sample.Sample"));
  ExpectFailure(Call({"Echo"}), 1, HasSubstr("write package.Service/Method"));
}

// ---- How calls end ----

TEST_F(RpcCliTest, AFailedCallIsItsCodeAndItsText) {
  ExpectFailure(
      Call({"sample.Sample/Echo", "-d", "{\"code\": 5}"}), 64 + 5,
      AllOf(HasSubstr(server_->address + ": NOT_FOUND: asked for 5\n"),
            HasSubstr("details, 7 bytes as base64: ZGV0YWlscw==\n")));
  ExpectFailure(
      Call({"sample.Sample/Count", "-d", "{\"number\": 1, \"code\": 8}"}),
      64 + 8, HasSubstr("RESOURCE_EXHAUSTED"), "{\"number\":\"1\"}\n");
  // It is there, and nobody implements it.
  ExpectFailure(Call({"sample.Spare/Echo"}), 64 + 12,
                HasSubstr("UNIMPLEMENTED"));
}

TEST_F(RpcCliTest, TheDeadlineEndsTheCall) {
  ExpectFailure(Call({"sample.Sample/Wait", "-max-time", "0.3"}), 64 + 4,
                HasSubstr("DEADLINE_EXCEEDED"));
}

TEST_F(RpcCliTest, MetadataGoesThereAndBack) {
  const ProcessResult done =
      Call({"sample.Sample/Echo", "-v", "-H", "Echo-Text: some words", "-H",
            "echo-some-bin: AAH_", "-d", "{\"text\":\"a\"}"});
  EXPECT_EQ(done.exit_status, 0) << done.err;
  EXPECT_EQ(done.out, "{\"text\":\"a\"}\n");
  EXPECT_THAT(done.err,
              AllOf(HasSubstr("Method: sample.Sample.Echo(.sample.Note) "
                              "returns (.sample.Note)\n"
                              "Sent metadata:\n"
                              "  echo-text: some words\n"
                              "  echo-some-bin: AAH/\n"
                              "Initial metadata:\n"
                              "  echo-some-bin: AAH/\n"
                              "  echo-text: some words\n"
                              "Trailing metadata:\n"
                              "  trailing-echo-some-bin: AAH/\n"
                              "  trailing-echo-text: some words\n"
                              "Status: OK after "),
                    EndsWith("; messages sent: 1, received: 1\n"
                             "Device: soft0\n")));
  EXPECT_THAT(Call({"sample.Sample/Join", "-v", "-d", "{} {} {}"}).err,
              HasSubstr("; messages sent: 3, received: 1\n"));
}

TEST_F(RpcCliTest, ADeadAddressIsUnavailable) {
  const std::string address = "127.0.0.1:1";
  ExpectFailure(Run({"call", address, "sample.Sample/Echo"}), 64 + 14,
                HasSubstr(address + ": UNAVAILABLE: "));
  ExpectFailure(Run({"list", address}), 64 + 14, HasSubstr("UNAVAILABLE"));
}

TEST_F(RpcCliTest, OutputThatCannotBeWrittenIsAnError) {
  const ProcessResult done = kv::RunProcess(
      {"/bin/sh", "-c",
       absl::StrCat(kProgram, " list ", server_->address, " >/dev/full")});
  ExpectFailure(done, 1, HasSubstr("No space left on device"));
}

// ---- Without reflection ----

TEST_F(RpcCliTest, AServerWithoutReflectionSaysWhatToDo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"list", plain_->address},
           {"describe", plain_->address, "sample.Note"},
           {"call", plain_->address, "sample.Sample/Echo"}}) {
    ExpectFailure(Run(words), 1,
                  AllOf(HasSubstr("InitProtoReflectionServerBuilderPlugin"),
                        HasSubstr("-proto FILE.proto -import-path DIR")));
  }
}

TEST_F(RpcCliTest, ProtoFilesTakeTheServersPlace) {
  // As other files import it; as a path.
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{
           {"-proto", "tests/tools/sample.proto"},
           {"-proto", "sample.proto", "-import-path", "tests/tools"},
           {"-proto", "./tests/tools/sample.proto"}}) {
    std::vector<std::string> words = {
        "call", plain_->address,   "sample.Sample/Echo", "-compact",
        "-d",   "{\"text\":\"a\"}"};
    words.insert(words.end(), flags.begin(), flags.end());
    ExpectOutput(Run(words), "{\"text\":\"a\"}\n");
  }
  ExpectOutput(
      Run({"list", plain_->address, "-proto", "tests/tools/sample.proto"}),
      "sample.Sample\nsample.Spare\n");
  // With the comments that reflection does not have.
  EXPECT_THAT(Run({"describe", plain_->address, "sample.Sample.Join", "-proto",
                   "tests/tools/sample.proto"})
                  .out,
              HasSubstr("// All texts as one.\n"));
}

TEST_F(RpcCliTest, WrongProtoFilesAreShownWithTheirPlace) {
  ExpectFailure(List({"-proto", "nix.proto"}), 1,
                AllOf(HasSubstr("nix.proto"), HasSubstr("-import-path DIR")));
  const std::string path = testing::TempDir() + "/wrong.proto";
  std::ofstream(path)
      << "syntax = \"proto3\";\nmessage M {\n  strnig s = 1;\n}";
  ExpectFailure(
      List({"-proto", "wrong.proto", "-import-path", testing::TempDir()}), 1,
      HasSubstr("wrong.proto:3:3: \"strnig\" is not defined"));
}

TEST_F(RpcCliTest, AServerThatKnowsTheOldNameOnlyAndSendsFilesOneByOne) {
  ExpectOutput(Run({"list", old_->address}), "sample.Sample\n");
  ExpectOutput(Run({"call", old_->address, "sample.Sample/Echo", "-compact",
                    "-d", "{\"time\":\"2026-01-02T03:04:05Z\"}"}),
               "{\"time\":\"2026-01-02T03:04:05Z\"}\n");
}

// ---- The command line ----

TEST_F(RpcCliTest, WrongUseIsStatusTwo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {}, {"list"}, {"lsit", "a:1"}, {"list", "a:1", "-nix"}}) {
    ExpectFailure(Run(words), 2, HasSubstr("rpc_cli -help"));
  }
  ExpectFailure(Run({"list", "no-port"}), 2, HasSubstr("no-port"));
  ExpectFailure(List({"-channel-arg", "verbena.device=nix"}), 2,
                HasSubstr("nix"));
  ExpectFailure(List({"-channel-arg", "verbena.pollers=many"}), 2,
                HasSubstr("verbena.pollers"));
  const ProcessResult help = Run({"-help"});
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.out, HasSubstr("rpc_cli call ADDRESS SERVICE/METHOD"));
}

}  // namespace
}  // namespace tools
