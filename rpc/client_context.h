// What a client says about one call besides its request, and hears of it
// besides its response: deadline, metadata, attachments, cancelling.
//
//   rpc::ClientContext context;
//   context.set_deadline(std::chrono::system_clock::now() + 100ms);
//   context.AddMetadata("user", "ada");
//   rpc::Status status = stub->Get(&context, request, &response);
//
// A context serves one call. It must live until the call is over (until the
// callback or OnDone runs, which may destroy it).
//
// Thread rule: one thread at a time; TryCancel may be called from any thread
// while the call runs. What a call received is read once it is over (the
// initial metadata: from OnReadInitialMetadataDone on).
#ifndef VERBENA_RPC_CLIENT_CONTEXT_H_
#define VERBENA_RPC_CLIENT_CONTEXT_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rpc/auth_context.h"
#include "rpc/buffer.h"
#include "rpc/compression.h"
#include "rpc/credentials.h"
#include "rpc/internal/cancel_listener.h"
#include "rpc/internal/deadline.h"
#include "rpc/internal/received_metadata.h"
#include "rpc/metadata.h"
#include "rpc/propagation_options.h"
#include "rpc/status.h"
#include "rpc/transport.h"

struct census_context;

namespace rpc {
class CallbackServerContext;
class ServerContextBase;
namespace internal {
class ClientAsyncCall;
class ClientReactorStream;
class ClientInterception;
class ClientStream;
class ClientUnaryCall;
struct CallTarget;
}  // namespace internal
namespace testing {
class ClientContextTestPeer;
}  // namespace testing

class ClientContext {
 public:
  ClientContext();
  ClientContext(const ClientContext&) = delete;
  ClientContext& operator=(const ClientContext&) = delete;

  // For a call that a handler makes for the one that it serves: it ends by the
  // deadline of that one, if its own is not earlier, and is cancelled when that
  // one is cancelled, or over. It keeps its channel alive.
  //
  //   auto context = rpc::ClientContext::FromServerContext(*server_context);
  //   rpc::Status status = backend_->Get(context.get(), *request, response);
  static std::unique_ptr<ClientContext> FromServerContext(
      const ServerContextBase& server_context,
      PropagationOptions options = PropagationOptions());
  static std::unique_ptr<ClientContext> FromCallbackServerContext(
      const CallbackServerContext& server_context,
      PropagationOptions options = PropagationOptions());

  // ---- Before the call ----

  // When to give up: the call then ends with DEADLINE_EXCEEDED, on both sides.
  // absl::Time, or a time point of std::chrono's system or steady clock.
  // Default: never.
  template <class T>
  void set_deadline(const T& deadline) {
    deadline_ = internal::ToTime(deadline);
  }
  std::chrono::system_clock::time_point deadline() const {
    return internal::ToSystemClock(deadline_);
  }
  absl::Time raw_deadline() const { return deadline_; }

  // Wait for a connection until the deadline. Default: end with UNAVAILABLE
  // when connecting fails.
  void set_wait_for_ready(bool wait_for_ready) {
    wait_for_ready_ = wait_for_ready ? WaitForReady::kYes : WaitForReady::kNo;
  }
  void set_fail_fast(bool fail_fast) { set_wait_for_ready(!fail_fast); }

  // Initial metadata for the server. An illegal pair (see metadata.h) makes the
  // call end with INTERNAL, more than fits with RESOURCE_EXHAUSTED.
  void AddMetadata(const std::string& key, const std::string& value);

  // What the server's ExperimentalGetAuthority says; else that is of the
  // channel: grpc.default_authority, or its address.
  void set_authority(const std::string& authority) {
    sent().authority = authority;
  }

  // A call with any ends with UNAUTHENTICATED, as gRPC's do on a channel that
  // is not secure.
  void set_credentials(const std::shared_ptr<CallCredentials>& credentials) {
    sent().credentials = credentials;
  }
  std::shared_ptr<CallCredentials> credentials() const {
    return sent_ == nullptr ? nullptr : sent_->credentials;
  }

  // A stream of reactors that is written begins with what is written first
  // then, or when it is cancelled or its deadline passes: until then OnDone
  // does not come. Others begin at once all the same; but the queue API's
  // StartCall gives no event, as gRPC's does not.
  void set_initial_metadata_corked(bool corked) { sent().corked = corked; }

  // Remembered, and without effect.
  void set_census_context(struct census_context* census) {
    sent().census = census;
  }
  struct census_context* census_context() const {
    return sent_ == nullptr ? nullptr : sent_->census;
  }

  // Bytes to go beside the request. Memory of Channel::AllocateBuffer, or that
  // came as an attachment, is not copied where it is longer than a frame (10
  // KiB); it must not change until the call is over. What lies in front of it
  // in its block may, where nobody else refers to the block (Buffer::headroom).
  void set_attachment(BufferChain attachment) {
    sent_attachment_ = std::move(attachment);
  }

  // Remembered, and without effect; see compression.h.
  void set_compression_algorithm(CompressionAlgorithm algorithm) {
    compression_algorithm_ = static_cast<uint8_t>(algorithm);
  }
  CompressionAlgorithm compression_algorithm() const {
    return static_cast<CompressionAlgorithm>(compression_algorithm_);
  }

  // ---- While it runs ----

  // Asks for the call to end with CANCELLED, also on the server; it may be too
  // late. Before the call has begun: it will not run. REQUIRES: the channel
  // outlives this function.
  void TryCancel();

  // The server, once there was a connection to it: "ipv4:127.0.0.1:50051",
  // "ipv6:[::1]:50051". Empty before, and where the call did not begin. On a
  // channel with several addresses or a service config: the one that this call
  // went to, to be read once the call is over (or its initial metadata came).
  // REQUIRES: the channel outlives this function.
  std::string peer() const;

  // Who the server is: nobody that could be told. See auth_context.h.
  std::shared_ptr<const AuthContext> auth_context() const {
    return internal::UnauthenticatedPeer();
  }

  // ---- Afterwards ----

  // What came beside the response; empty where nothing did. Registered memory:
  // keep it for no longer than it is needed, or copy it. On the software device
  // the peer may have had a part in copying it, and can write to it still:
  // where peers may be hostile, copy before you check
  // (verbena.allow_other_users has it copied by this side alone).
  const BufferChain& attachment() const { return received_attachment_; }
  BufferChain& attachment() { return received_attachment_; }

  // Valid as long as the context.
  const ReceivedMetadataMap& GetServerInitialMetadata() const {
    return received_ == nullptr ? internal::ReceivedMetadata::Empty()
                                : received_->initial();
  }
  const ReceivedMetadataMap& GetServerTrailingMetadata() const {
    return received_ == nullptr ? internal::ReceivedMetadata::Empty()
                                : received_->trailing();
  }

  // For logs: how the call ended, by whom. Empty where it went well, or never
  // began.
  std::string debug_error_string() const;

  // False where it is certain that no handler saw the call, so that repeating
  // it is safe. True after success.
  bool may_have_run() const { return may_have_run_; }

 private:
  friend class internal::ClientInterception;
  friend class internal::ClientAsyncCall;
  friend class internal::ClientReactorStream;
  friend class internal::ClientStream;
  friend class internal::ClientUnaryCall;
  friend class testing::ClientContextTestPeer;

  // Bits of phase_. Who sets the second of two bits that belong together does
  // what both call for.
  enum Phase : uint32_t {
    kStarted = 1,    // transport_ and handle_ are set
    kClosed = 2,     // the transport closed the call
    kCancelled = 4,  // TryCancel was called
    kOver = 8,       // nothing more will happen
    kFailed = 16,    // with kCancelled: not by TryCancel, but for its status
  };

  std::atomic<uint32_t> phase_{0};
  bool used_ = false;
  WaitForReady wait_for_ready_ = WaitForReady::kDefault;
  bool may_have_run_ = false;
  uint8_t compression_algorithm_ = COMPRESS_NONE;
  uint8_t status_code_ = StatusCode::OK;  // of a call that began
  ClientTransport* transport_ = nullptr;
  CallHandle handle_;
  absl::Time deadline_ = kNoDeadline;
  BufferChain sent_attachment_;
  BufferChain received_attachment_;
  // The call whose handler makes this one.
  class Parent;
  // Most calls have nothing of this, and pay for it one null pointer.
  struct SentMetadata {
    SentMetadata();
    ~SentMetadata();

    internal::MetadataMap pairs;
    std::string encoded;  // in the header block's form
    bool corked = false;
    std::string authority;
    std::shared_ptr<CallCredentials> credentials;
    struct census_context* census = nullptr;
    // Hear of TryCancel, in their order. A parent may cancel the call before it
    // begins.
    absl::Mutex mutex;
    std::vector<std::shared_ptr<internal::CancelListener>> cancel_listeners
        ABSL_GUARDED_BY(mutex);
    // Goes first: it waits for whoever is cancelling the call.
    std::unique_ptr<Parent> parent;
  };
  SentMetadata& sent();
  // Whoever cancelled it before is told to `listener` now. REQUIRES: sent_ is
  // not null.
  void AddCancelListener(std::shared_ptr<internal::CancelListener> listener);

  // Its own, or its parent's.
  absl::Time EarlierDeadline() const;
  // Encodes what the context says besides its deadline, and looks at what a
  // parent says. REQUIRES: sent_ is not null.
  Status EncodeSent(const internal::CallTarget& target,
                    absl::Span<const std::byte>* header);

  std::unique_ptr<SentMetadata> sent_;
  std::unique_ptr<internal::ReceivedMetadata> received_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_CLIENT_CONTEXT_H_
