#include "tests/tools/sample_service.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace tools {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using sample::Note;

rpc::Status StatusOf(const Note& note) {
  if (note.code() == 0) return rpc::Status::OK;
  return rpc::Status(static_cast<rpc::StatusCode>(note.code()),
                     absl::StrCat("asked for ", note.code()), "details");
}

}  // namespace

rpc::Status SampleService::Echo(rpc::ServerContext* context, const Note* note,
                                Note* answer) {
  for (const auto& [key, value] : context->client_metadata()) {
    if (!key.starts_with("echo-")) continue;
    context->AddInitialMetadata(std::string(key), std::string(value));
    context->AddTrailingMetadata("trailing-" + std::string(key),
                                 std::string(value));
  }
  *answer = *note;
  return StatusOf(*note);
}

rpc::Status SampleService::Wait(rpc::ServerContext* context, const Note*,
                                Note*) {
  while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  return rpc::Status::OK;
}

rpc::Status SampleService::Count(rpc::ServerContext*, const Note* note,
                                 rpc::ServerWriter<Note>* writer) {
  Note answer;
  answer.set_text(note->text());
  for (int64_t i = 1; i <= note->number(); ++i) {
    answer.set_number(i);
    if (!writer->Write(answer)) break;
  }
  return StatusOf(*note);
}

rpc::Status SampleService::Join(rpc::ServerContext*,
                                rpc::ServerReader<Note>* reader, Note* answer) {
  Note note;
  while (reader->Read(&note)) {
    if (note.code() != 0) return StatusOf(note);
    answer->set_text(answer->text() + note.text());
    answer->set_number(answer->number() + 1);
  }
  return rpc::Status::OK;
}

rpc::Status SampleService::Chat(rpc::ServerContext*,
                                rpc::ServerReaderWriter<Note, Note>* stream) {
  Note note;
  while (stream->Read(&note)) {
    if (note.code() != 0) return StatusOf(note);
    if (!stream->Write(note)) break;
  }
  return rpc::Status::OK;
}

rpc::Status OldReflectionService::ServerReflectionInfo(
    rpc::ServerContext*, rpc::ServerReaderWriter<Response, Request>* stream) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  Request request;
  while (stream->Read(&request)) {
    Response response;
    if (request.has_list_services()) {
      response.mutable_list_services_response()->add_service()->set_name(
          "sample.Sample");
    } else {
      const FileDescriptor* file =
          request.has_file_by_filename()
              ? pool.FindFileByName(request.file_by_filename())
              : pool.FindFileContainingSymbol(request.file_containing_symbol());
      FileDescriptorProto proto;
      if (file != nullptr) file->CopyTo(&proto);
      response.mutable_file_descriptor_response()->add_file_descriptor_proto(
          proto.SerializeAsString());
    }
    if (!stream->Write(response)) break;
  }
  return rpc::Status::OK;
}

}  // namespace tools
