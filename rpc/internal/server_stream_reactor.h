// What the three kinds of a server's reactors of streams have in common. See
// server_stream_callback.h.
#ifndef VERBENA_RPC_INTERNAL_SERVER_STREAM_REACTOR_H_
#define VERBENA_RPC_INTERNAL_SERVER_STREAM_REACTOR_H_

#include <atomic>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/buffer.h"
#include "rpc/internal/message_ref.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class CallbackServerStream;

// What a reactor asks of its stream.
class ServerStreamControl {
 public:
  virtual void StartSendInitialMetadata() = 0;
  virtual void StartRead(MessageRef message, BufferChain* attachment) = 0;
  virtual void StartWrite(ConstMessageRef message, WriteOptions options) = 0;
  virtual void StartWriteAndFinish(ConstMessageRef message,
                                   WriteOptions options, Status status) = 0;
  virtual void Finish(Status status) = 0;

 protected:
  ~ServerStreamControl() = default;
};

class ServerStreamReactor {
 public:
  virtual ~ServerStreamReactor() = default;
  ServerStreamReactor(const ServerStreamReactor&) = delete;
  ServerStreamReactor& operator=(const ServerStreamReactor&) = delete;

  // Sends what AddInitialMetadata collected now, not with the first message. At
  // most once, before the first message.
  void StartSendInitialMetadata();
  // Ends the call with `status`. Once, also after OnCancel (a second one is
  // logged and left out); nothing may be started after it, and OnDone follows.
  void Finish(Status status);

  // `ok` is false where the call ended first.
  virtual void OnSendInitialMetadataDone(bool /*ok*/) {}
  // The call is over, and nothing that was started is left: the last reaction,
  // always. May destroy the reactor.
  virtual void OnDone() = 0;
  // Nobody waits for the rest of the call any more; where Finish was called,
  // what it said may not have arrived. Finish is still due, where it was not
  // called yet.
  virtual void OnCancel() {}

 protected:
  ServerStreamReactor() = default;

  void BeginRead(MessageRef message, BufferChain* attachment);
  void BeginWrite(ConstMessageRef message, WriteOptions options);
  void BeginWriteAndFinish(ConstMessageRef message, WriteOptions options,
                           Status status);

 private:
  friend class CallbackServerStream;

  // For the kinds that have them.
  virtual void OnReadDone(bool /*ok*/) {}
  virtual void OnWriteDone(bool /*ok*/) {}

  // What was started before there was a stream, of each at most one.
  struct Early {
    bool send_initial_metadata = false;
    MessageRef read;
    BufferChain* read_attachment = nullptr;
    ConstMessageRef write;
    WriteOptions write_options;
    std::optional<Status> status;  // Finish
    bool finish_with_write = false;

    bool finished() const { return status.has_value(); }
    bool any() const {
      return send_initial_metadata || read.has_message() ||
             write.has_message() || status.has_value();
    }
  };

  // Does `now` with the stream; where there is none yet, `early` notes it.
  template <class Now, class Note>
  void Do(Now now, Note early);
  // Gives it its stream, and starts what was started before.
  void Bind(ServerStreamControl* stream);
  // Takes it away, and what was started too late: the reactor may serve another
  // call.
  void Unbind();
  static void Replay(Early early, ServerStreamControl& stream);
  static void LogSecondFinish();

  std::atomic<ServerStreamControl*> stream_{nullptr};
  absl::Mutex mutex_;
  Early early_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SERVER_STREAM_REACTOR_H_
