#include "rpc/internal/server_stream_reactor.h"

#include <utility>

#include "rpc/logging.h"

namespace rpc::internal {

template <class Now, class Note>
void ServerStreamReactor::Do(Now now, Note early) {
  ServerStreamControl* stream = stream_.load(std::memory_order_acquire);
  if (stream == nullptr) {
    absl::MutexLock lock(&mutex_);
    stream = stream_.load(std::memory_order_relaxed);
    if (stream == nullptr) return early(early_);
  }
  now(*stream);
}

void ServerStreamReactor::StartSendInitialMetadata() {
  Do([](auto& stream) { stream.StartSendInitialMetadata(); },
     [](Early& early) { early.send_initial_metadata = true; });
}

void ServerStreamReactor::BeginRead(MessageRef message,
                                    BufferChain* attachment) {
  Do([&](auto& stream) { stream.StartRead(message, attachment); },
     [&](Early& early) {
       early.read = message;
       early.read_attachment = attachment;
     });
}

void ServerStreamReactor::BeginWrite(ConstMessageRef message,
                                     WriteOptions options) {
  Do([&](auto& stream) { stream.StartWrite(message, std::move(options)); },
     [&](Early& early) {
       early.write = message;
       early.write_options = std::move(options);
     });
}

void ServerStreamReactor::BeginWriteAndFinish(ConstMessageRef message,
                                              WriteOptions options,
                                              Status status) {
  Do(
      [&](auto& stream) {
        stream.StartWriteAndFinish(message, std::move(options),
                                   std::move(status));
      },
      [&](Early& early) {
        if (early.finished()) return LogSecondFinish();
        early.write = message;
        early.write_options = std::move(options);
        early.status = std::move(status);
        early.finish_with_write = true;
      });
}

void ServerStreamReactor::Finish(Status status) {
  Do([&](auto& stream) { stream.Finish(std::move(status)); },
     [&](Early& early) {
       if (early.finished()) return LogSecondFinish();
       early.status = std::move(status);
     });
}

// What another thread starts meanwhile, or a reaction, is not to overtake what
// was started before.
void ServerStreamReactor::Bind(ServerStreamControl* stream) {
  while (true) {
    Early early;
    {
      absl::MutexLock lock(&mutex_);
      if (!early_.any()) {
        stream_.store(stream, std::memory_order_release);
        return;
      }
      early = std::exchange(early_, Early());
    }
    const bool last = early.finished();
    Replay(std::move(early), *stream);
    // The reactor may be gone.
    if (last) return;
  }
}

void ServerStreamReactor::Unbind() {
  absl::MutexLock lock(&mutex_);
  stream_.store(nullptr, std::memory_order_relaxed);
  early_ = Early();
}

void ServerStreamReactor::Replay(Early early, ServerStreamControl& stream) {
  if (early.send_initial_metadata) stream.StartSendInitialMetadata();
  if (early.read.has_message()) {
    stream.StartRead(early.read, early.read_attachment);
  }
  if (early.finish_with_write) {
    return stream.StartWriteAndFinish(
        early.write, std::move(early.write_options), *std::move(early.status));
  }
  if (early.write.has_message()) {
    stream.StartWrite(early.write, std::move(early.write_options));
  }
  if (early.finished()) stream.Finish(*std::move(early.status));
}

void ServerStreamReactor::LogSecondFinish() {
  Log(LogLevel::kError, "Finish of a server's reactor was called twice");
}

}  // namespace rpc::internal
