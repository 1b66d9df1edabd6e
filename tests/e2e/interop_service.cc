#include "tests/e2e/interop_service.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace interop {
namespace {

void EchoMetadata(rpc::ServerContext& context) {
  for (const auto& [key, value] : context.client_metadata()) {
    if (key == kEchoInitialKey) {
      context.AddInitialMetadata(kEchoInitialKey, std::string(value));
    } else if (key == kEchoTrailingKey) {
      context.AddTrailingMetadata(kEchoTrailingKey, std::string(value));
    }
  }
}

rpc::Status ToStatus(const EchoStatus& status) {
  return rpc::Status(static_cast<rpc::StatusCode>(status.code()),
                     status.message());
}

rpc::Status CheckSize(int32_t bytes) {
  if (bytes >= 0) return rpc::Status::OK;
  return rpc::Status(rpc::StatusCode::INVALID_ARGUMENT,
                     "a payload's size is 0 or more bytes");
}

void Fill(int32_t bytes, Payload* payload) {
  payload->mutable_body()->assign(static_cast<size_t>(bytes), '\0');
}

// What a request asks for. False: nobody takes it any more.
template <class Writer>
bool Respond(const StreamingOutputCallRequest& request, Writer& writer,
             rpc::Status* status) {
  StreamingOutputCallResponse response;
  for (const ResponseParameters& parameters : request.response_parameters()) {
    *status = CheckSize(parameters.size());
    if (!status->ok()) return false;
    Fill(parameters.size(), response.mutable_payload());
    if (!writer.Write(response)) return false;
  }
  return true;
}

}  // namespace

rpc::Status InteropService::EmptyCall(rpc::ServerContext* context,
                                      const Empty* request, Empty* response) {
  return rpc::Status::OK;
}

rpc::Status InteropService::UnaryCall(rpc::ServerContext* context,
                                      const SimpleRequest* request,
                                      SimpleResponse* response) {
  EchoMetadata(*context);
  if (request->has_response_status()) {
    return ToStatus(request->response_status());
  }
  rpc::Status status = CheckSize(request->response_size());
  if (status.ok()) Fill(request->response_size(), response->mutable_payload());
  return status;
}

rpc::Status InteropService::StreamingInputCall(
    rpc::ServerContext* context,
    rpc::ServerReader<StreamingInputCallRequest>* reader,
    StreamingInputCallResponse* response) {
  size_t bytes = 0;
  StreamingInputCallRequest request;
  while (reader->Read(&request)) bytes += request.payload().body().size();
  response->set_aggregated_payload_size(static_cast<int32_t>(bytes));
  return rpc::Status::OK;
}

rpc::Status InteropService::StreamingOutputCall(
    rpc::ServerContext* context, const StreamingOutputCallRequest* request,
    rpc::ServerWriter<StreamingOutputCallResponse>* writer) {
  rpc::Status status;
  Respond(*request, *writer, &status);
  return status;
}

rpc::Status InteropService::FullDuplexCall(
    rpc::ServerContext* context,
    rpc::ServerReaderWriter<StreamingOutputCallResponse,
                            StreamingOutputCallRequest>* stream) {
  EchoMetadata(*context);
  rpc::Status status;
  StreamingOutputCallRequest request;
  while (stream->Read(&request)) {
    if (request.has_response_status()) {
      return ToStatus(request.response_status());
    }
    if (!Respond(request, *stream, &status)) break;
  }
  return status;
}

}  // namespace interop
