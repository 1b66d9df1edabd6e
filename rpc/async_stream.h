// Streams of the asynchronous API, on both sides: gRPC C++'s ClientAsyncReader,
// ClientAsyncWriter, ClientAsyncReaderWriter and ServerAsyncReader,
// ServerAsyncWriter, ServerAsyncReaderWriter. See completion_queue.h.
//
//   auto stream = stub->AsyncRouteChat(&context, &queue, tag);  // event: begun
//   stream->Write(note, tag);                                   // event: sent
//   stream->Read(&note, tag);                                   // event: there
//   stream->Finish(&status, tag);                               // event: over
//
// Of each kind of operation at most one at a time. A message that is written is
// needed until Write returns, one that is read until its event. A context must
// live until the last event of its call was taken; a client's object may go
// before.
//
// Beyond gRPC: attachments, each beside a message (WriteOptions::
// set_attachment, and Read's second argument).
//
// Thread rule: one thread may read while another one writes.
#ifndef VERBENA_RPC_ASYNC_STREAM_H_
#define VERBENA_RPC_ASYNC_STREAM_H_

#include <memory>
#include <utility>

#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/async_server_call.h"
#include "rpc/internal/client_async_call.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/server_context.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc {
namespace internal {

class ClientAsyncStreamingInterface {
 public:
  virtual ~ClientAsyncStreamingInterface() = default;
  // Begins a call that was prepared. `ok`: it is on its way.
  virtual void StartCall(void* tag) = 0;
  // Done when the server's initial metadata is in the context.
  virtual void ReadInitialMetadata(void* tag) = 0;
  // Done when the call is over. Once, when there is nothing more to write, nor
  // to read.
  virtual void Finish(Status* status, void* tag) = 0;
};

template <class R>
class AsyncReaderInterface {
 public:
  virtual ~AsyncReaderInterface() = default;
  // `ok`: there was a message.
  virtual void Read(R* message, void* tag) = 0;
};

template <class W>
class AsyncWriterInterface {
 public:
  virtual ~AsyncWriterInterface() = default;
  // `ok`: the message is on its way.
  virtual void Write(const W& message, void* tag) = 0;
  virtual void Write(const W& message, WriteOptions options, void* tag) = 0;
  void WriteLast(const W& message, WriteOptions options, void* tag) {
    Write(message, std::move(options.set_last_message()), tag);
  }
};

}  // namespace internal

// ---- Client ----

template <class R>
class ClientAsyncReaderInterface
    : public internal::ClientAsyncStreamingInterface,
      public internal::AsyncReaderInterface<R> {};

template <class W>
class ClientAsyncWriterInterface
    : public internal::ClientAsyncStreamingInterface,
      public internal::AsyncWriterInterface<W> {
 public:
  // Half-close.
  virtual void WritesDone(void* tag) = 0;
};

template <class W, class R>
class ClientAsyncReaderWriterInterface
    : public internal::ClientAsyncStreamingInterface,
      public internal::AsyncWriterInterface<W>,
      public internal::AsyncReaderInterface<R> {
 public:
  virtual void WritesDone(void* tag) = 0;
};

namespace internal {

template <class R>
class ClientAsyncReaderFactory;
template <class W>
class ClientAsyncWriterFactory;
template <class W, class R>
class ClientAsyncReaderWriterFactory;

// What the three kinds have in common.
template <class Interface>
class ClientAsyncStream : public Interface {
 public:
  void StartCall(void* tag) override { call_->StartCall(tag); }
  void ReadInitialMetadata(void* tag) override {
    call_->ReadInitialMetadata(tag);
  }
  void Finish(Status* status, void* tag) override {
    call_->Finish(status, tag);
  }

 protected:
  explicit ClientAsyncStream(ClientAsyncCall::Ptr call)
      : call_(std::move(call)) {}
  ClientAsyncCall& call() { return *call_; }

 private:
  const ClientAsyncCall::Ptr call_;
};

template <class R, class Base>
class ClientAsyncReading : public Base {
 public:
  void Read(R* message, void* tag) override { Read(message, nullptr, tag); }
  // `attachment` gets what came beside the message; may be null.
  void Read(R* message, BufferChain* attachment, void* tag) {
    this->call().Read(message, attachment, tag);
  }

 protected:
  using Base::Base;
};

template <class W, class Base>
class ClientAsyncWriting : public Base {
 public:
  void Write(const W& message, void* tag) override {
    Write(message, WriteOptions(), tag);
  }
  void Write(const W& message, WriteOptions options, void* tag) override {
    this->call().Write(message, std::move(options), tag);
  }
  void WritesDone(void* tag) override { this->call().WritesDone(tag); }

 protected:
  using Base::Base;
};

}  // namespace internal

template <class R>
class ClientAsyncReader final
    : public internal::ClientAsyncReading<
          R, internal::ClientAsyncStream<ClientAsyncReaderInterface<R>>> {
  friend class internal::ClientAsyncReaderFactory<R>;
  using ClientAsyncReader::ClientAsyncReading::ClientAsyncReading;
};

template <class W>
class ClientAsyncWriter final
    : public internal::ClientAsyncWriting<
          W, internal::ClientAsyncStream<ClientAsyncWriterInterface<W>>> {
  friend class internal::ClientAsyncWriterFactory<W>;
  using ClientAsyncWriter::ClientAsyncWriting::ClientAsyncWriting;
};

template <class W, class R>
class ClientAsyncReaderWriter final
    : public internal::ClientAsyncWriting<
          W, internal::ClientAsyncReading<
                 R, internal::ClientAsyncStream<
                        ClientAsyncReaderWriterInterface<W, R>>>> {
  friend class internal::ClientAsyncReaderWriterFactory<W, R>;
  using ClientAsyncReaderWriter::ClientAsyncWriting::ClientAsyncWriting;
};

namespace internal {

// What generated stubs call. The caller owns what Create returns. `start`:
// begin the call, whose event has `tag`.
template <class Stream>
Stream* StartIf(bool start, Stream* stream, void* tag) {
  if (start) stream->StartCall(tag);
  return stream;
}

template <class R>
class ClientAsyncReaderFactory {
 public:
  template <class W>
  static ClientAsyncReader<R>* Create(ChannelInterface* channel,
                                      CompletionQueue* queue,
                                      const RpcMethod& method,
                                      ClientContext* context, const W& request,
                                      bool start, void* tag) {
    return StartIf(start,
                   new ClientAsyncReader<R>(ClientAsyncCall::Create(
                       channel, queue, method, context, request, MessageRef())),
                   tag);
  }
};

template <class W>
class ClientAsyncWriterFactory {
 public:
  template <class R>
  static ClientAsyncWriter<W>* Create(ChannelInterface* channel,
                                      CompletionQueue* queue,
                                      const RpcMethod& method,
                                      ClientContext* context, R* response,
                                      bool start, void* tag) {
    return StartIf(
        start,
        new ClientAsyncWriter<W>(ClientAsyncCall::Create(
            channel, queue, method, context, ConstMessageRef(), response)),
        tag);
  }
};

template <class W, class R>
class ClientAsyncReaderWriterFactory {
 public:
  static ClientAsyncReaderWriter<W, R>* Create(ChannelInterface* channel,
                                               CompletionQueue* queue,
                                               const RpcMethod& method,
                                               ClientContext* context,
                                               bool start, void* tag) {
    return StartIf(
        start,
        new ClientAsyncReaderWriter<W, R>(ClientAsyncCall::Create(
            channel, queue, method, context, ConstMessageRef(), MessageRef())),
        tag);
  }
};

}  // namespace internal

// ---- Server ----
//
// Bound to a call by AsyncService::RequestX; to be used from its event on. A
// handler that takes the interfaces can be tested without a call.

// The client streams.
template <class W, class R>
class ServerAsyncReaderInterface
    : public internal::ServerAsyncStreamingInterface,
      public internal::AsyncReaderInterface<R> {
 public:
  // Ends the call: with `message` where `status` is OK, else with it alone.
  virtual void Finish(const W& message, const Status& status, void* tag) = 0;
  virtual void FinishWithError(const Status& status, void* tag) = 0;
};

namespace internal {

// What the two that write have in common.
template <class W>
class ServerAsyncWritingInterface : public ServerAsyncStreamingInterface,
                                    public AsyncWriterInterface<W> {
 public:
  // Ends the call.
  virtual void Finish(const Status& status, void* tag) = 0;
  // Write and Finish by one event.
  virtual void WriteAndFinish(const W& message, WriteOptions options,
                              const Status& status, void* tag) = 0;
};

}  // namespace internal

// The server streams.
template <class W>
class ServerAsyncWriterInterface
    : public internal::ServerAsyncWritingInterface<W> {};

// Both do.
template <class W, class R>
class ServerAsyncReaderWriterInterface
    : public internal::ServerAsyncWritingInterface<W>,
      public internal::AsyncReaderInterface<R> {};

namespace internal {

template <class R, class Base>
class ServerAsyncReading : public Base {
 public:
  void Read(R* message, void* tag) override { Read(message, nullptr, tag); }
  // `attachment` gets what came beside the message; may be null.
  void Read(R* message, BufferChain* attachment, void* tag) {
    this->call().Read(message, attachment, tag);
  }

 protected:
  using Base::Base;
};

template <class W, class Base>
class ServerAsyncWriting : public Base {
 public:
  void Write(const W& message, void* tag) override {
    Write(message, WriteOptions(), tag);
  }
  void Write(const W& message, WriteOptions options, void* tag) override {
    this->call().Write(message, std::move(options), tag);
  }
  void WriteAndFinish(const W& message, WriteOptions options,
                      const Status& status, void* tag) override {
    this->call().WriteAndFinish(message, std::move(options), status, tag);
  }
  void Finish(const Status& status, void* tag) override {
    this->call().Finish(ConstMessageRef(), status, tag);
  }

 protected:
  using Base::Base;
};

}  // namespace internal

template <class W, class R>
class ServerAsyncReader final
    : public internal::ServerAsyncReading<
          R, internal::ServerAsyncResponder<ServerAsyncReaderInterface<W, R>>> {
 public:
  explicit ServerAsyncReader(ServerContext* context)
      : ServerAsyncReader::ServerAsyncReading(context) {}

  void Finish(const W& message, const Status& status, void* tag) override {
    this->call().Finish(message, status, tag);
  }
  void FinishWithError(const Status& status, void* tag) override {
    this->call().Finish(internal::ConstMessageRef(), status, tag);
  }
};

template <class W>
class ServerAsyncWriter final
    : public internal::ServerAsyncWriting<
          W, internal::ServerAsyncResponder<ServerAsyncWriterInterface<W>>> {
 public:
  explicit ServerAsyncWriter(ServerContext* context)
      : ServerAsyncWriter::ServerAsyncWriting(context) {}
};

template <class W, class R>
class ServerAsyncReaderWriter final
    : public internal::ServerAsyncWriting<
          W, internal::ServerAsyncReading<
                 R, internal::ServerAsyncResponder<
                        ServerAsyncReaderWriterInterface<W, R>>>> {
 public:
  explicit ServerAsyncReaderWriter(ServerContext* context)
      : ServerAsyncReaderWriter::ServerAsyncWriting(context) {}
};

}  // namespace rpc

#endif  // VERBENA_RPC_ASYNC_STREAM_H_
