// Goal: a server with reflection answers what gRPC's clients ask, in both
// versions of the service, with gRPC's names, numbers and codes.
// Method: servers over the loopback transport, asked by generated stubs of
// either version.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1/reflection.rpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.rpc.pb.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"
#include "tests/rpc/reflected.rpc.pb.h"

namespace rpc::testing {
namespace {

using google::protobuf::FileDescriptorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr char kTop[] = "tests/rpc/reflected.proto";
constexpr char kMiddle[] = "tests/rpc/reflected_middle.proto";
constexpr char kBase[] = "tests/rpc/reflected_base.proto";

struct V1 {
  using Service = grpc::reflection::v1::ServerReflection;
  using Request = grpc::reflection::v1::ServerReflectionRequest;
  using Response = grpc::reflection::v1::ServerReflectionResponse;
};

struct V1Alpha {
  using Service = grpc::reflection::v1alpha::ServerReflection;
  using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = grpc::reflection::v1alpha::ServerReflectionResponse;
};

// A server with two services, and one stream to its reflection.
template <class Version>
class ReflectionTest : public ::testing::Test {
 protected:
  using Request = typename Version::Request;
  using Response = typename Version::Response;

  ReflectionTest() : network_({.threads = 4}) {
    reflection::InitProtoReflectionServerBuilderPlugin();
    reflection::InitProtoReflectionServerBuilderPlugin();  // once is enough
    ServerBuilder builder;
    builder.AddListeningPort(network_.address(), InsecureServerCredentials());
    builder.RegisterService(&reflected_).RegisterService(&echo_);
    server_ = builder.BuildAndStart();
    stub_ = Version::Service::NewStub(
        CreateChannel(network_.address(), InsecureChannelCredentials()));
    context_.set_deadline(absl::Now() + absl::Seconds(60));
    stream_ = stub_->ServerReflectionInfo(&context_);
  }

  void TearDown() override {
    EXPECT_TRUE(stream_->WritesDone());
    const Status status = stream_->Finish();
    EXPECT_TRUE(status.ok()) << status;
  }

  Response Ask(const Request& request) {
    Response response;
    EXPECT_TRUE(stream_->Write(request));
    EXPECT_TRUE(stream_->Read(&response));
    EXPECT_EQ(response.original_request().SerializeAsString(),
              request.SerializeAsString());
    return response;
  }
  Response AskForFile(const std::string& name) {
    Request request;
    request.set_file_by_filename(name);
    return Ask(request);
  }
  Response AskForSymbol(const std::string& name) {
    Request request;
    request.set_file_containing_symbol(name);
    return Ask(request);
  }
  Response AskForExtension(const std::string& type, int number) {
    Request request;
    request.mutable_file_containing_extension()->set_containing_type(type);
    request.mutable_file_containing_extension()->set_extension_number(number);
    return Ask(request);
  }
  Response AskForNumbers(const std::string& type) {
    Request request;
    request.set_all_extension_numbers_of_type(type);
    return Ask(request);
  }

  LoopbackNetwork network_;
  Reflected::Service reflected_;
  SyncEcho echo_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<typename Version::Service::Stub> stub_;
  ClientContext context_;
  std::unique_ptr<ClientReaderWriterInterface<Request, Response>> stream_;
};

// The names of the files in an answer; empty where it is none.
template <class Response>
std::vector<std::string> Files(const Response& response) {
  std::vector<std::string> names;
  const auto& files = response.file_descriptor_response();
  for (const std::string& bytes : files.file_descriptor_proto()) {
    FileDescriptorProto proto;
    EXPECT_TRUE(proto.ParseFromString(bytes));
    names.push_back(proto.name());
  }
  return names;
}

template <class Response>
void ExpectError(const Response& response, StatusCode code,
                 const std::string& text) {
  ASSERT_TRUE(response.has_error_response()) << response.ShortDebugString();
  EXPECT_EQ(response.error_response().error_code(), code);
  EXPECT_THAT(response.error_response().error_message(), HasSubstr(text));
}

using Versions = ::testing::Types<V1, V1Alpha>;
TYPED_TEST_SUITE(ReflectionTest, Versions);

TYPED_TEST(ReflectionTest, ListsServicesAndThenItself) {
  for (const char* content : {"", "*"}) {
    typename TypeParam::Request request;
    request.set_list_services(content);
    request.set_host("anywhere");
    const auto response = this->Ask(request);
    EXPECT_EQ(response.valid_host(), "anywhere");
    std::vector<std::string> names;
    for (const auto& service : response.list_services_response().service()) {
      names.push_back(service.name());
    }
    EXPECT_THAT(names, ElementsAre("rpc.testing.Reflected", "rpc.testing.Echo",
                                   "grpc.reflection.v1.ServerReflection",
                                   "grpc.reflection.v1alpha.ServerReflection"));
  }
}

TYPED_TEST(ReflectionTest, AFileComesWithAllThatItNeeds) {
  const auto response = this->AskForFile(kTop);
  EXPECT_THAT(Files(response), ElementsAre(kTop, kBase, kMiddle));

  FileDescriptorProto expected;
  Extensible::descriptor()->file()->CopyTo(&expected);
  EXPECT_EQ(response.file_descriptor_response().file_descriptor_proto(1),
            expected.SerializeAsString());
}

TYPED_TEST(ReflectionTest, WhatAFileNeedsComesOnceAStream) {
  EXPECT_THAT(Files(this->AskForFile(kMiddle)), ElementsAre(kMiddle, kBase));
  EXPECT_THAT(Files(this->AskForFile(kTop)), ElementsAre(kTop));
  // What is asked for comes again.
  EXPECT_THAT(Files(this->AskForFile(kBase)), ElementsAre(kBase));
  EXPECT_THAT(Files(this->AskForFile(kMiddle)), ElementsAre(kMiddle));

  ClientContext context;
  context.set_deadline(absl::Now() + absl::Seconds(60));
  const auto another = this->stub_->ServerReflectionInfo(&context);
  typename TypeParam::Request request;
  typename TypeParam::Response response;
  request.set_file_by_filename(kMiddle);
  EXPECT_TRUE(another->Write(request));
  EXPECT_TRUE(another->Read(&response));
  EXPECT_THAT(Files(response), ElementsAre(kMiddle, kBase));
  another->WritesDone();
  EXPECT_TRUE(another->Finish().ok());
}

TYPED_TEST(ReflectionTest, SymbolsOfEveryKindLeadToTheirFile) {
  const std::map<std::string, std::string> files = {
      {"rpc.testing.Reflected", kTop},
      {"rpc.testing.AlsoReflected", kTop},  // linked, if not served
      {"rpc.testing.Reflected.Get", kTop},
      {"rpc.testing.third", kTop},
      {"rpc.testing.Holder", kMiddle},
      {"rpc.testing.Holder.held", kMiddle},
      {"rpc.testing.Extensible.Kind", kBase},
      {"rpc.testing.Extensible.PLAIN", kBase},
      {"grpc.reflection.v1.ServerReflection",
       "grpc/reflection/v1/reflection.proto"},
      {"grpc.reflection.v1alpha.ServerReflection",
       "grpc/reflection/v1alpha/reflection.proto"},
  };
  for (const auto& [symbol, file] : files) {
    const std::vector<std::string> names = Files(this->AskForSymbol(symbol));
    ASSERT_FALSE(names.empty()) << symbol;
    EXPECT_EQ(names.front(), file) << symbol;
  }
}

TYPED_TEST(ReflectionTest, ExtensionsAreFoundByNumber) {
  const auto numbers = this->AskForNumbers("rpc.testing.Extensible");
  ASSERT_TRUE(numbers.has_all_extension_numbers_response());
  const auto& all = numbers.all_extension_numbers_response();
  EXPECT_EQ(all.base_type_name(), "rpc.testing.Extensible");
  EXPECT_THAT(all.extension_number(), UnorderedElementsAre(101, 102, 103));
  EXPECT_THAT(Files(this->AskForExtension("rpc.testing.Extensible", 102)),
              ElementsAre(kMiddle, kBase));
  EXPECT_THAT(Files(this->AskForExtension("rpc.testing.Extensible", 103)),
              ElementsAre(kTop));

  const auto none = this->AskForNumbers("rpc.testing.Holder");
  ASSERT_TRUE(none.has_all_extension_numbers_response());
  EXPECT_EQ(none.all_extension_numbers_response().extension_number_size(), 0);
}

TYPED_TEST(ReflectionTest, WhatIsNotThereIsNotFoundAndTheStreamGoesOn) {
  constexpr StatusCode kNotFound = StatusCode::NOT_FOUND;
  ExpectError(this->AskForFile("nix.proto"), kNotFound, "'nix.proto'");
  ExpectError(this->AskForFile(""), kNotFound, "''");
  ExpectError(this->AskForSymbol("nix.Nix"), kNotFound, "'nix.Nix'");
  ExpectError(this->AskForSymbol(".rpc.testing.Holder"), kNotFound, "symbol");
  ExpectError(this->AskForSymbol(""), kNotFound, "''");
  ExpectError(this->AskForNumbers("nix.Nix"), kNotFound, "'nix.Nix'");
  ExpectError(this->AskForNumbers("rpc.testing.Reflected"), kNotFound,
              "message");
  ExpectError(this->AskForExtension("nix.Nix", 1), kNotFound, "'nix.Nix'");
  ExpectError(this->AskForExtension("rpc.testing.Extensible", 199), kNotFound,
              "199");
  ExpectError(this->AskForExtension("rpc.testing.Extensible", -1), kNotFound,
              "-1");
  EXPECT_THAT(Files(this->AskForFile(kBase)), ElementsAre(kBase));
}

TYPED_TEST(ReflectionTest, ARequestOfNoKindIsUnimplemented) {
  ExpectError(this->Ask({}), StatusCode::UNIMPLEMENTED, "no kind");
}

// ---- The protocol ----

// The fields, "Message.field": number.
std::map<std::string, int> FieldsOf(
    const google::protobuf::FileDescriptor* file) {
  std::map<std::string, int> numbers;
  for (int i = 0; i < file->message_type_count(); ++i) {
    const google::protobuf::Descriptor* message = file->message_type(i);
    for (int j = 0; j < message->field_count(); ++j) {
      const google::protobuf::FieldDescriptor* field = message->field(j);
      numbers[message->name() + "." + field->name()] = field->number();
    }
  }
  return numbers;
}

TEST(ReflectionProtoTest, HasGrpcsNamesAndNumbers) {
  const std::map<std::string, int> expected = {
      {"ServerReflectionRequest.host", 1},
      {"ServerReflectionRequest.file_by_filename", 3},
      {"ServerReflectionRequest.file_containing_symbol", 4},
      {"ServerReflectionRequest.file_containing_extension", 5},
      {"ServerReflectionRequest.all_extension_numbers_of_type", 6},
      {"ServerReflectionRequest.list_services", 7},
      {"ExtensionRequest.containing_type", 1},
      {"ExtensionRequest.extension_number", 2},
      {"ServerReflectionResponse.valid_host", 1},
      {"ServerReflectionResponse.original_request", 2},
      {"ServerReflectionResponse.file_descriptor_response", 4},
      {"ServerReflectionResponse.all_extension_numbers_response", 5},
      {"ServerReflectionResponse.list_services_response", 6},
      {"ServerReflectionResponse.error_response", 7},
      {"FileDescriptorResponse.file_descriptor_proto", 1},
      {"ExtensionNumberResponse.base_type_name", 1},
      {"ExtensionNumberResponse.extension_number", 2},
      {"ListServiceResponse.service", 1},
      {"ServiceResponse.name", 1},
      {"ErrorResponse.error_code", 1},
      {"ErrorResponse.error_message", 2},
  };
  EXPECT_EQ(FieldsOf(V1::Request::descriptor()->file()), expected);
  EXPECT_EQ(FieldsOf(V1Alpha::Request::descriptor()->file()), expected);
}

// One class serves both: their messages must be the same on the wire.
TEST(ReflectionProtoTest, VersionsDifferInTheirNamesAlone) {
  const auto text = [](const google::protobuf::FileDescriptor* file) {
    std::string text = file->DebugString();
    for (size_t at; (at = text.find(file->package())) != std::string::npos;) {
      text.replace(at, file->package().size(), "PACKAGE");
    }
    return text;
  };
  EXPECT_EQ(text(V1::Request::descriptor()->file()),
            text(V1Alpha::Request::descriptor()->file()));
}

}  // namespace
}  // namespace rpc::testing
