#include "tools/rpc_cli/call.h"

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/message.h"
#include "rpc/buffer.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_stream.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/status.h"
#include "rpc/write_options.h"
#include "tools/rpc_cli/exit_status.h"
#include "tools/rpc_cli/lookup.h"

namespace rpc_cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using rpc::internal::RpcMethod;

RpcMethod::RpcType KindOf(const MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? RpcMethod::BIDI_STREAMING
                                     : RpcMethod::CLIENT_STREAMING;
  }
  return method.server_streaming() ? RpcMethod::SERVER_STREAMING
                                   : RpcMethod::NORMAL_RPC;
}

// All kinds are streams here; a direction with one message is a short one.
class Call {
 public:
  Call(const std::shared_ptr<rpc::ChannelInterface>& channel,
       const MethodDescriptor& method, const JsonCodec& codec,
       MessageInput& input, const CallOptions& options)
      : channel_(channel),
        method_(method),
        codec_(codec),
        input_(input),
        options_(options),
        path_(absl::StrCat("/", method.service()->full_name(), "/",
                           method.name())),
        rpc_method_(path_.c_str(), KindOf(method), channel),
        sent_(method.client_streaming() ? 0 : 1) {}

  absl::Status Run() {
    const std::unique_ptr<Message> request = New(method_.input_type());
    if (!method_.client_streaming()) {
      absl::Status status = ReadOnlyMessage(request.get());
      if (!status.ok()) return status;
    }
    const absl::Time begin = absl::Now();
    Begin(*request);
    std::thread writer;
    if (method_.client_streaming()) {
      writer = std::thread([&] { WriteAll(request.get()); });
    }
    const rpc::Status status = ReadAll();
    if (writer.joinable()) {
      input_.Interrupt();
      writer.join();
    }
    stream_->Abandon();
    RemarkEnd(status, absl::Now() - begin);
    return Result(status);
  }

 private:
  std::unique_ptr<Message> New(const Descriptor* type) {
    return std::unique_ptr<Message>(factory_.GetPrototype(type)->New());
  }

  absl::Status Parse(const std::string& json, Message* message) const {
    const absl::Status status = codec_.Parse(json, message);
    if (status.ok()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("message ", input_.count(), " of the input is no ",
                     message->GetTypeName(), ": ", status.message()));
  }

  // Empty, where there is none.
  absl::Status ReadOnlyMessage(Message* request) {
    absl::StatusOr<std::optional<std::string>> json = input_.Next();
    if (!json.ok()) return json.status();
    if (!json->has_value()) return absl::OkStatus();
    absl::Status status = Parse(**json, request);
    if (!status.ok()) return status;
    json = input_.Next();
    if (!json.ok()) return json.status();
    if (!json->has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        method_.full_name(), " takes one message, and the input has more"));
  }

  void Begin(const Message& request) {
    context_.set_deadline(options_.deadline);
    for (const auto& [key, value] : options_.metadata) {
      context_.AddMetadata(key, value);
    }
    options_.remark(absl::StrCat("Method: ", Signature(method_),
                                 "\nSent metadata:\n",
                                 FormatMetadata(options_.metadata)));
    stream_ = rpc::internal::ClientStream::Start(
        channel_.get(), rpc_method_, &context_,
        method_.client_streaming() ? rpc::internal::ConstMessageRef()
                                   : rpc::internal::ConstMessageRef(request));
  }

  void WriteAll(Message* message) {
    while (true) {
      const absl::StatusOr<std::optional<std::string>> json = input_.Next();
      if (!json.ok()) return EndEarly(json.status());
      if (!json->has_value()) break;
      absl::Status status = Parse(**json, message);
      if (!status.ok()) return EndEarly(std::move(status));
      if (!stream_->BlockingWrite(*message, rpc::WriteOptions())) return;
      ++sent_;
    }
    stream_->BlockingWritesDone();
  }

  rpc::Status ReadAll() {
    const std::unique_ptr<Message> response = New(method_.output_type());
    stream_->BlockingWaitForInitialMetadata();
    options_.remark(
        absl::StrCat("Initial metadata:\n",
                     FormatMetadata(context_.GetServerInitialMetadata())));
    if (!method_.server_streaming()) {
      rpc::Status status = stream_->BlockingFinish(response.get());
      if (status.ok()) Show(*response, context_.attachment());
      return status;
    }
    rpc::BufferChain attachment;
    while (stream_->BlockingRead(response.get(), &attachment)) {
      if (!Show(*response, attachment)) break;
    }
    return stream_->BlockingFinish();
  }

  bool Show(const Message& response, const rpc::BufferChain& attachment) {
    ++received_;
    absl::StatusOr<std::string> json = codec_.Print(response);
    absl::Status status;
    if (json.ok()) {
      status = options_.show(*json);
    } else {
      status = absl::InternalError(absl::StrCat(
          "message ", received_, " of the answer, a ", response.GetTypeName(),
          ", cannot be shown as JSON: ", json.status().message()));
    }
    if (!attachment.empty()) {
      options_.remark(absl::StrCat("Attachment: ", attachment.size(),
                                   " bytes, not shown\n"));
    }
    if (status.ok()) return true;
    EndEarly(std::move(status));
    return false;
  }

  // For a reason of this side.
  void EndEarly(absl::Status reason) {
    {
      absl::MutexLock lock(&mutex_);
      if (reason_.ok()) reason_ = std::move(reason);
    }
    stream_->Fail(rpc::Status(rpc::StatusCode::CANCELLED, "ended by rpc_cli"));
  }

  absl::Status Result(const rpc::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (!reason_.ok()) return reason_;
    return status.ok() ? absl::OkStatus() : CallError(status);
  }

  void RemarkEnd(const rpc::Status& status, absl::Duration time) {
    options_.remark(absl::StrCat(
        "Trailing metadata:\n",
        FormatMetadata(context_.GetServerTrailingMetadata()),
        "Status: ", rpc::StatusCodeName(status.error_code()), " after ",
        absl::FormatDuration(time), "; messages sent: ", sent_,
        ", received: ", received_, "\n"));
  }

  const std::shared_ptr<rpc::ChannelInterface> channel_;
  const MethodDescriptor& method_;
  const JsonCodec& codec_;
  MessageInput& input_;
  const CallOptions& options_;
  const std::string path_;
  const RpcMethod rpc_method_;
  google::protobuf::DynamicMessageFactory factory_;
  rpc::ClientContext context_;
  std::shared_ptr<rpc::internal::ClientStream> stream_;
  int sent_;  // the writer's, while there is one
  int received_ = 0;

  absl::Mutex mutex_;
  absl::Status reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status MakeCall(const std::shared_ptr<rpc::ChannelInterface>& channel,
                      const MethodDescriptor& method, const JsonCodec& codec,
                      MessageInput& input, const CallOptions& options) {
  return Call(channel, method, codec, input, options).Run();
}

}  // namespace rpc_cli
