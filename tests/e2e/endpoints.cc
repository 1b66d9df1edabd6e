#include "tests/e2e/endpoints.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "benchmarks/test_pattern.h"

namespace e2e {
namespace {

using benchmarks::Checksum;
using benchmarks::TestPattern;

constexpr uint64_t kMessageSeed = ProbeService::kMessageSeed;
constexpr uint64_t kAttachmentSeed = ProbeService::kAttachmentSeed;

rpc::Status Compare(const char* what, uint64_t sent_bytes,
                    uint64_t sent_checksum, uint64_t bytes, uint64_t checksum) {
  if (bytes == sent_bytes && checksum == sent_checksum) return rpc::Status::OK;
  return rpc::Status(
      rpc::StatusCode::DATA_LOSS,
      absl::StrCat(what, " of ", sent_bytes, " bytes came as ", bytes,
                   bytes == sent_bytes ? " other ones" : " bytes"));
}

rpc::Status CompareBlob(size_t message_bytes, const Blob& response,
                        uint64_t attachment_bytes, uint64_t attachment_checksum,
                        const rpc::BufferChain& attachment) {
  const std::string expected = TestPattern(message_bytes, kMessageSeed);
  rpc::Status message =
      Compare("message", expected.size(), Checksum(expected),
              response.data().size(), Checksum(response.data()));
  if (!message.ok()) return message;
  return Compare("attachment", attachment_bytes, attachment_checksum,
                 attachment.size(), Checksum(attachment));
}

// The sum of an attachment that Produce makes.
uint64_t ProducedChecksum(size_t bytes) {
  return Checksum(TestPattern(bytes, kAttachmentSeed));
}

}  // namespace

Arguments QuickReconnect() {
  return {{"grpc.initial_reconnect_backoff_ms", 5},
          {"grpc.min_reconnect_backoff_ms", 5},
          {"grpc.max_reconnect_backoff_ms", 20}};
}

Server::Server(const Arguments& arguments, const std::string& address,
               rpc::Service* another,
               std::unique_ptr<rpc::ServerCompletionQueue>* queue) {
  rpc::ServerBuilder builder;
  builder.AddListeningPort(address, rpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&service_);
  if (another != nullptr) builder.RegisterService(another);
  if (queue != nullptr) *queue = builder.AddCompletionQueue();
  builder.AddChannelArgument("verbena.device",
                             TheDeviceUnderTest().server_device);
  for (const auto& [name, value] : arguments) {
    builder.AddChannelArgument(name, value);
  }
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder.BuildAndStartOrStatus();
  status_ = server.status();
  if (server.ok()) server_ = *std::move(server);
}

std::string Server::address() const { return ServerUri(port_); }

Client::Client(const std::string& address, const Arguments& arguments) {
  rpc::ChannelArguments channel_arguments;
  channel_arguments.SetString("verbena.device",
                              TheDeviceUnderTest().client_device);
  for (const auto& [name, value] : arguments) {
    channel_arguments.SetInt64(name, value);
  }
  channel_ = rpc::CreateCustomChannel(
      address, rpc::InsecureChannelCredentials(), channel_arguments);
  stub_ = Probe::NewStub(channel_);
}

absl::StatusOr<rpc::BufferChain> Client::Attachment(size_t bytes) const {
  absl::StatusOr<rpc::Buffer> buffer = channel_->AllocateBuffer(bytes);
  if (!buffer.ok()) return buffer.status();
  benchmarks::FillTestPattern(reinterpret_cast<char*>(buffer->mutable_data()),
                              bytes, kAttachmentSeed);
  return rpc::BufferChain(*std::move(buffer));
}

rpc::Status Client::Echo(size_t message_bytes, size_t attachment_bytes,
                         absl::Duration timeout) const {
  absl::StatusOr<rpc::BufferChain> attachment = Attachment(attachment_bytes);
  if (!attachment.ok()) return attachment.status();
  const uint64_t checksum = Checksum(*attachment);
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + timeout);
  context.set_attachment(*std::move(attachment));
  Blob request;
  request.set_data(TestPattern(message_bytes, kMessageSeed));
  Blob response;
  rpc::Status status = stub_->Echo(&context, request, &response);
  if (!status.ok()) return status;
  return CompareBlob(message_bytes, response, attachment_bytes, checksum,
                     context.attachment());
}

rpc::Status Client::Consume(size_t message_bytes, size_t attachment_bytes,
                            absl::Duration timeout) const {
  absl::StatusOr<rpc::BufferChain> attachment = Attachment(attachment_bytes);
  if (!attachment.ok()) return attachment.status();
  const uint64_t checksum = Checksum(*attachment);
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + timeout);
  context.set_attachment(*std::move(attachment));
  Blob request;
  request.set_data(TestPattern(message_bytes, kMessageSeed));
  Summary summary;
  rpc::Status status = stub_->Consume(&context, request, &summary);
  if (status.ok()) {
    status = Compare("message", message_bytes, Checksum(request.data()),
                     summary.message_bytes(), summary.message_checksum());
  }
  if (status.ok()) {
    status = Compare("attachment", attachment_bytes, checksum,
                     summary.attachment_bytes(), summary.attachment_checksum());
  }
  return status;
}

rpc::Status Client::Produce(size_t message_bytes, size_t attachment_bytes,
                            absl::Duration timeout) const {
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + timeout);
  Sizes request;
  request.set_message_bytes(message_bytes);
  request.set_attachment_bytes(attachment_bytes);
  Blob response;
  rpc::Status status = stub_->Produce(&context, request, &response);
  if (!status.ok()) return status;
  return CompareBlob(message_bytes, response, attachment_bytes,
                     ProducedChecksum(attachment_bytes), context.attachment());
}

rpc::Status Client::Block(absl::Duration timeout) const {
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + timeout);
  Nothing response;
  return stub_->Block(&context, Blob(), &response);
}

rpc::Status Client::ReleaseBlocked() const {
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + kTimeout);
  Nothing response;
  return stub_->ReleaseBlocked(&context, Nothing(), &response);
}

rpc::Status Client::Sleep(absl::Duration time) const {
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + kTimeout + time);
  Nap request;
  request.set_milliseconds(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(time)));
  Nothing response;
  return stub_->Sleep(&context, request, &response);
}

Observation Client::Observe() const {
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + kTimeout);
  Observation response;
  EXPECT_OK(stub_->Observe(&context, Nothing(), &response));
  return response;
}

TimedContext::TimedContext(absl::Duration timeout) {
  set_deadline(absl::Now() + timeout);
}

testing::AssertionResult IsOk(const rpc::Status& status) {
  return HasCode(status, rpc::StatusCode::OK);
}

testing::AssertionResult HasCode(const rpc::Status& status,
                                 rpc::StatusCode code) {
  if (status.error_code() == code) {
    return testing::AssertionSuccess() << status.ToString();
  }
  return testing::AssertionFailure() << "expected " << rpc::StatusCodeName(code)
                                     << ", got " << status.ToString();
}

}  // namespace e2e
