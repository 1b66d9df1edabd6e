#include "rpc/internal/unary_over_stream.h"

#include <memory>

#include "rpc/internal/client_stream.h"

namespace rpc::internal {

Status UnaryOverStream(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, ConstMessageRef request,
                       MessageRef response) {
  const std::shared_ptr<ClientStream> stream =
      ClientStream::Start(channel, method, context, request);
  Status status = stream->BlockingFinish(response);
  stream->Abandon();
  return status;
}

UnaryStreamReactor::UnaryStreamReactor(
    ChannelInterface* channel, const RpcMethod& method, ClientContext* context,
    ConstMessageRef request, MessageRef response,
    std::function<void()> on_metadata,
    std::function<void(const Status&)> on_done)
    : on_metadata_(std::move(on_metadata)), on_done_(std::move(on_done)) {
  ClientReactorStream::Create(channel, method, context, request, response,
                              this);
}

// As of other unary calls, nothing is said of metadata that will not come.
void UnaryStreamReactor::OnReadInitialMetadataDone(bool ok) {
  if (ok && on_metadata_ != nullptr) on_metadata_();
}

void UnaryStreamReactor::OnDone(const Status& status) {
  const std::function<void(const Status&)> on_done = on_done_;
  const Status final_status = status;
  delete this;
  on_done(final_status);
}

}  // namespace rpc::internal
