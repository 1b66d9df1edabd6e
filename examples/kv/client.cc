#include "examples/kv/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "examples/kv/limits.h"
#include "examples/kv/value_field.h"

namespace kv {
namespace {

// A value may take as long as at 10 MB/s, far below any network of the last 20
// years, before its deadline strikes.
constexpr double kSecondsPerByte = 1e-7;

// A value of one buffer is sent with the fewest work requests, but no device
// and no memory has room for any size in one piece.
constexpr uint64_t kLargestBufferBytes = uint64_t{256} << 20;

std::shared_ptr<rpc::Channel> MakeChannel(const ClientOptions& options) {
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", options.device);
  arguments.SetInt("verbena.allow_other_users",
                   options.allow_other_users ? 1 : 0);
  return rpc::CreateCustomChannel(options.address,
                                  rpc::InsecureChannelCredentials(), arguments);
}

// The value of a response or an event; empty where it has none. DATA_LOSS where
// the attachment is not what the message says.
template <typename Message>
absl::StatusOr<rpc::BufferChain> TakeValue(const Message& message,
                                           rpc::BufferChain attachment) {
  const absl::Status checked = CheckAttachment(message, attachment);
  if (!checked.ok()) return absl::DataLossError(checked.message());
  if (message.has_attached_bytes()) return attachment;
  return rpc::BufferChain(rpc::Buffer::CopyOf(message.inline_value()));
}

}  // namespace

// A put in flight; deletes itself.
struct Client::AsyncPut {
  rpc::ClientContext context;
  PutRequest request;
  PutResponse response;
  std::function<void(absl::Status)> done;
};

Client::Client(ClientOptions options)
    : options_(std::move(options)),
      channel_(MakeChannel(options_)),
      stub_(KeyValue::NewStub(channel_)) {}

void Client::SetDeadline(rpc::ClientContext* context,
                         uint64_t value_bytes) const {
  context->set_deadline(
      absl::Now() + options_.timeout +
      absl::Seconds(kSecondsPerByte * static_cast<double>(value_bytes)));
}

absl::Status Client::Explain(const rpc::Status& status,
                             const rpc::ClientContext& context) const {
  if (status.ok()) return absl::OkStatus();
  const absl::Status plain = status.ToAbslStatus();
  absl::StatusCode code = plain.code();
  // The server's answers have these codes too: they must not be mixed up.
  if (!context.may_have_run() && (code == absl::StatusCode::kInvalidArgument ||
                                  code == absl::StatusCode::kNotFound)) {
    code = absl::StatusCode::kFailedPrecondition;
  }
  if (absl::StrContains(plain.message(), options_.address)) {
    return absl::Status(code, plain.message());
  }
  return absl::Status(code,
                      absl::StrCat(options_.address, ": ", plain.message()));
}

absl::StatusOr<Value> Client::Get(std::string_view key) {
  rpc::ClientContext context;
  // How large the value is, is known only when it is there.
  SetDeadline(&context, kLargestBufferBytes);
  GetRequest request;
  request.set_key(key.data(), key.size());
  GetResponse response;
  const rpc::Status status = stub_->Get(&context, request, &response);
  if (!status.ok()) return Explain(status, context);
  absl::StatusOr<rpc::BufferChain> value =
      TakeValue(response, std::move(context.attachment()));
  if (!value.ok()) return Explain(value.status(), context);
  return Value{.bytes = *std::move(value), .version = response.version()};
}

absl::StatusOr<PutResponse> Client::Put(std::string_view key,
                                        rpc::BufferChain value) {
  rpc::ClientContext context;
  SetDeadline(&context, value.size());
  PutRequest request;
  request.set_key(key.data(), key.size());
  context.set_attachment(SetValue(std::move(value), &request));
  PutResponse response;
  const rpc::Status status = stub_->Put(&context, request, &response);
  if (!status.ok()) return Explain(status, context);
  return response;
}

void Client::PutAsync(std::string_view key, rpc::BufferChain value,
                      std::function<void(absl::Status)> done) {
  auto* put = new AsyncPut;
  put->done = std::move(done);
  SetDeadline(&put->context, value.size());
  put->request.set_key(key.data(), key.size());
  put->context.set_attachment(SetValue(std::move(value), &put->request));
  stub_->async()->Put(&put->context, &put->request, &put->response,
                      [this, put](rpc::Status status) {
                        const std::unique_ptr<AsyncPut> owned(put);
                        owned->done(Explain(status, owned->context));
                      });
}

absl::StatusOr<CompareAndSwapResponse> Client::CompareAndSwap(
    std::string_view key, uint64_t expected_version, rpc::BufferChain value) {
  rpc::ClientContext context;
  SetDeadline(&context, value.size());
  CompareAndSwapRequest request;
  request.set_key(key.data(), key.size());
  request.set_expected_version(expected_version);
  context.set_attachment(SetValue(std::move(value), &request));
  CompareAndSwapResponse response;
  const rpc::Status status =
      stub_->CompareAndSwap(&context, request, &response);
  if (!status.ok()) return Explain(status, context);
  return response;
}

absl::StatusOr<DeleteResponse> Client::Delete(std::string_view key) {
  rpc::ClientContext context;
  SetDeadline(&context, 0);
  DeleteRequest request;
  request.set_key(key.data(), key.size());
  DeleteResponse response;
  const rpc::Status status = stub_->Delete(&context, request, &response);
  if (!status.ok()) return Explain(status, context);
  return response;
}

absl::StatusOr<ListResponse> Client::List(std::string_view prefix,
                                          uint32_t page_size,
                                          std::string_view page_token) {
  rpc::ClientContext context;
  SetDeadline(&context, 0);
  ListRequest request;
  request.set_prefix(prefix.data(), prefix.size());
  request.set_page_size(page_size);
  request.set_page_token(page_token.data(), page_token.size());
  ListResponse response;
  const rpc::Status status = stub_->List(&context, request, &response);
  if (!status.ok()) return Explain(status, context);
  return response;
}

absl::StatusOr<StatsResponse> Client::Stats() {
  rpc::ClientContext context;
  SetDeadline(&context, 0);
  StatsResponse response;
  const rpc::Status status = stub_->Stats(&context, StatsRequest(), &response);
  if (!status.ok()) return Explain(status, context);
  return response;
}

absl::Status Client::Watch(const WatchRequest& request,
                           WatchFunction on_event) {
  rpc::ClientContext context;
  const auto reader = stub_->Watch(&context, request);
  WatchEvent event;
  rpc::BufferChain attachment;
  while (reader->Read(&event, &attachment)) {
    absl::StatusOr<rpc::BufferChain> value =
        TakeValue(event, std::move(attachment));
    if (!value.ok()) return Explain(value.status(), context);
    if (!on_event(event, *std::move(value))) return absl::OkStatus();
  }
  return Explain(reader->Finish(), context);
}

Client::Loading::Loading(Client& client, uint64_t value_bytes)
    : client_(client) {
  client_.SetDeadline(&context_, value_bytes);
  writer_ = client_.stub_->Load(&context_, &summary_);
}

bool Client::Loading::Put(std::string_view key, rpc::BufferChain value) {
  LoadRequest request;
  request.set_key(key.data(), key.size());
  rpc::BufferChain attachment = SetValue(std::move(value), &request);
  return writer_->Write(
      request, rpc::WriteOptions().set_attachment(std::move(attachment)));
}

absl::StatusOr<LoadSummary> Client::Loading::Finish() {
  writer_->WritesDone();
  const rpc::Status status = writer_->Finish();
  if (!status.ok()) return client_.Explain(status, context_);
  return summary_;
}

absl::StatusOr<rpc::BufferChain> Client::AllocateValue(uint64_t bytes) {
  rpc::BufferChain value;
  if (bytes <= kMaxInlineValueBytes) {
    value.Append(rpc::Buffer::FromHeap(static_cast<size_t>(bytes)));
    return value;
  }
  while (value.size() < bytes) {
    absl::StatusOr<rpc::Buffer> buffer =
        channel_->AllocateBuffer(static_cast<size_t>(
            std::min(bytes - value.size(), kLargestBufferBytes)));
    if (!buffer.ok()) return buffer.status();
    value.Append(*std::move(buffer));
  }
  return value;
}

}  // namespace kv
