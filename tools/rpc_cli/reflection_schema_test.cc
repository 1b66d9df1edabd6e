// Goal: what a server answers by reflection, right or wrong, ends in
// descriptors or in an error that says what was wrong. Method: a reflection
// service that answers as the test says, on the software device.
#include "tools/rpc_cli/reflection_schema.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1/reflection.rpc.pb.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tools/rpc_cli/exit_status.h"

namespace rpc_cli {
namespace {

using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1::ServerReflection;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ScriptedReflection final : public ServerReflection::Service {
 public:
  using Answer =
      std::function<ServerReflectionResponse(const ServerReflectionRequest&)>;

  // How streams are answered, and how they end. No answer: they end at once.
  void Set(Answer answer, rpc::Status end = rpc::Status()) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
    end_ = std::move(end);
  }
  int questions() const {
    absl::MutexLock lock(&mutex_);
    return questions_;
  }
  std::map<std::string, std::string> metadata() const {
    absl::MutexLock lock(&mutex_);
    return metadata_;
  }

  rpc::Status ServerReflectionInfo(
      rpc::ServerContext* context,
      rpc::ServerReaderWriter<ServerReflectionResponse,
                              ServerReflectionRequest>* stream) override {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, value] : context->client_metadata()) {
      metadata_[std::string(key)] = std::string(value);
    }
    ServerReflectionRequest request;
    while (stream->Read(&request)) {
      ++questions_;
      if (!answer_ || !stream->Write(answer_(request))) break;
    }
    return end_;
  }

 private:
  mutable absl::Mutex mutex_;
  Answer answer_ ABSL_GUARDED_BY(mutex_);
  rpc::Status end_ ABSL_GUARDED_BY(mutex_);
  int questions_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::string> metadata_ ABSL_GUARDED_BY(mutex_);
};

class ReflectionSchemaTest : public testing::Test {
 protected:
  ReflectionSchemaTest() {
    int port = 0;
    rpc::ServerBuilder builder;
    builder.AddListeningPort("rdma://127.0.0.1:0",
                             rpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument("verbena.device", "soft");
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    schema_ = MakeReflectionSchema(
        rpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                           rpc::InsecureChannelCredentials()),
        {.metadata = {{"user", "ada"}}});
  }

  // `files` by name; they declare what their names say, as package.
  void AnswerWith(std::map<std::string, FileDescriptorProto> files) {
    service_.Set([files = std::move(files)](
                     const ServerReflectionRequest& request) {
      ServerReflectionResponse response;
      const std::string name =
          request.has_file_by_filename()
              ? request.file_by_filename()
              : request.file_containing_symbol() + ".proto";
      const auto found = files.find(name);
      if (found == files.end()) {
        response.mutable_error_response()->set_error_code(
            rpc::StatusCode::NOT_FOUND);
      } else {
        response.mutable_file_descriptor_response()->add_file_descriptor_proto(
            found->second.SerializeAsString());
      }
      return response;
    });
  }

  const google::protobuf::Descriptor* Find(const std::string& message) {
    return schema_->pool()->FindMessageTypeByName(message);
  }

  void ExpectLookupError(absl::StatusCode code, const std::string& text) {
    EXPECT_EQ(schema_->LookupError().code(), code) << schema_->LookupError();
    EXPECT_THAT(std::string(schema_->LookupError().message()), HasSubstr(text));
  }

  ScriptedReflection service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Schema> schema_;
};

// "NAME.proto" with a message NAME, which has a field of each type.
FileDescriptorProto File(const std::string& name,
                         const std::vector<std::string>& types = {}) {
  FileDescriptorProto file;
  file.set_name(name + ".proto");
  auto* const message = file.add_message_type();
  message->set_name(name);
  for (const std::string& type : types) {
    file.add_dependency(type + ".proto");
    auto* const field = message->add_field();
    field->set_name("field_" + type);
    field->set_number(message->field_size());
    field->set_type_name("." + type);
    field->set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
    field->set_type(google::protobuf::FieldDescriptorProto::TYPE_MESSAGE);
  }
  return file;
}

TEST_F(ReflectionSchemaTest, FilesAreAskedForOnceWhenTheyAreNeeded) {
  AnswerWith({{"A.proto", File("A", {"B", "C"})},
              {"B.proto", File("B", {"C"})},
              {"C.proto", File("C")}});
  ASSERT_NE(Find("A"), nullptr) << schema_->LookupError();
  EXPECT_EQ(Find("A")->field(1)->message_type(), Find("C"));
  EXPECT_NE(Find("B"), nullptr);
  EXPECT_EQ(service_.questions(), 3);
  EXPECT_TRUE(schema_->LookupError().ok());
  EXPECT_EQ(service_.metadata()["user"], "ada");
}

TEST_F(ReflectionSchemaTest, WhatTheServerDoesNotHaveIsNoError) {
  AnswerWith({});
  EXPECT_EQ(Find("A"), nullptr);
  EXPECT_TRUE(schema_->LookupError().ok()) << schema_->LookupError();
}

TEST_F(ReflectionSchemaTest, AMissingImportIsNamed) {
  AnswerWith({{"A.proto", File("A", {"B"})}});
  EXPECT_EQ(Find("A"), nullptr);
  ExpectLookupError(absl::StatusCode::kInternal, "A.proto is wrong at B.proto");
}

TEST_F(ReflectionSchemaTest, AFileThatIsNoneIsAnError) {
  service_.Set([](const ServerReflectionRequest&) {
    ServerReflectionResponse response;
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(
        "\xff\xff");
    return response;
  });
  EXPECT_EQ(Find("A"), nullptr);
  ExpectLookupError(absl::StatusCode::kInternal, "a file that is not one");
}

TEST_F(ReflectionSchemaTest, ErrorsOfTheServiceAreKept) {
  service_.Set([](const ServerReflectionRequest&) {
    ServerReflectionResponse response;
    response.mutable_error_response()->set_error_code(
        rpc::StatusCode::RESOURCE_EXHAUSTED);
    response.mutable_error_response()->set_error_message("too busy");
    return response;
  });
  EXPECT_EQ(Find("A"), nullptr);
  ExpectLookupError(absl::StatusCode::kResourceExhausted, "too busy");
  EXPECT_FALSE(IsCallError(schema_->LookupError()));
}

TEST_F(ReflectionSchemaTest, AFailedCallIsACallsError) {
  service_.Set(nullptr,
               rpc::Status(rpc::StatusCode::PERMISSION_DENIED, "who are you"));
  const absl::Status status = schema_->ServiceNames().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ExitStatusOf(status), 64 + 7);
  ExpectLookupError(absl::StatusCode::kPermissionDenied, "who are you");
}

TEST_F(ReflectionSchemaTest, AnEndWithoutAnAnswerIsAnError) {
  const absl::Status status = schema_->ServiceNames().status();
  EXPECT_EQ(ExitStatusOf(status), 64 + 13);
  EXPECT_THAT(std::string(status.message()), HasSubstr("without an answer"));
}

TEST_F(ReflectionSchemaTest, ServicesAreSorted) {
  service_.Set([](const ServerReflectionRequest& request) {
    EXPECT_TRUE(request.has_list_services());
    ServerReflectionResponse response;
    for (const char* name : {"c", "a", "b"}) {
      response.mutable_list_services_response()->add_service()->set_name(name);
    }
    return response;
  });
  EXPECT_THAT(*schema_->ServiceNames(), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace rpc_cli
