#include "rpc/internal/client_async_call.h"

#include <utility>

#include "rpc/logging.h"

namespace rpc::internal {

ClientAsyncCall::Ptr ClientAsyncCall::Create(
    ChannelInterface* channel, CompletionQueue* queue, const RpcMethod& method,
    ClientContext* context, ConstMessageRef request, MessageRef response) {
  Ptr call(new ClientAsyncCall(
      ClientStream::Create(channel, method, context,
                           ClientStream::Completions::kQuick),
      queue, response, context));
  call->stream_->Prepare(request);
  return call;
}

bool ClientAsyncCall::Begin(Operation& operation, void* tag) {
  if (!operation.Begin(&queue_, tag, stream_->driven_channel())) {
    Log(LogLevel::kError,
        "an operation was begun on a CompletionQueue that is shut down; it is "
        "left out");
    return false;
  }
  references_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void ClientAsyncCall::StartCall(void* tag) {
  if (context_.sent_ != nullptr && context_.sent_->corked) return StartCall();
  if (Begin(start_, tag)) StartNow(&start_);
}

void ClientAsyncCall::StartNow(Operation* started) {
  const ChannelInterface* const channel = stream_->driven_channel();
  stream_->SetForGuests(channel != nullptr && queue_.IsDriving(*channel));
  stream_->StartPrepared(started);
}

void ClientAsyncCall::ReadInitialMetadata(void* tag) {
  if (Begin(metadata_, tag)) stream_->WaitForInitialMetadata(&metadata_);
}

void ClientAsyncCall::Read(MessageRef message, BufferChain* attachment,
                           void* tag) {
  if (!Begin(read_, tag)) return;
  read_message_ = message;
  read_attachment_ = attachment;
  stream_->Read(&received_, message, attachment, &read_);
}

void ClientAsyncCall::Write(ConstMessageRef message, WriteOptions options,
                            void* tag) {
  if (Begin(write_, tag)) stream_->Write(message, std::move(options), &write_);
}

void ClientAsyncCall::WritesDone(void* tag) {
  if (Begin(writes_done_, tag)) stream_->WritesDone(&writes_done_);
}

void ClientAsyncCall::Finish(MessageRef response, Status* status, void* tag) {
  if (!Begin(finish_, tag)) return;
  response_ = response;
  status_ = status;
  stream_->Finish(/*discard=*/false, response, &finish_);
}

void ClientAsyncCall::Finalize(Operation* operation, bool* ok) {
  if (operation == &read_) {
    *ok = *ok && stream_->Decode(received_, read_message_, read_attachment_);
  } else if (operation == &finish_) {
    *status_ = stream_->TakeStatus(response_);
  }
  Drop();
}

void ClientAsyncCall::Drop() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace rpc::internal
