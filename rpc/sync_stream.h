// Streams that block: gRPC C++'s ClientReader, ClientWriter, ClientReaderWriter
// and ServerReader, ServerWriter, ServerReaderWriter.
//
//   rpc::ClientContext context;
//   auto reader = stub->ListFeatures(&context, area);
//   Feature feature;
//   while (reader->Read(&feature)) Use(feature);
//   rpc::Status status = reader->Finish();
//
// A Write returns when its message is on its way and the next may follow: it
// waits for a reader that is slow. Beyond gRPC: attachments, each beside a
// message (WriteOptions::set_attachment, and Read's second argument).
// Registered memory longer than a frame (10 KiB) is not copied, on neither
// side.
//
// A client's object must go before its context; that ends a call that still
// runs, with CANCELLED. A server's lives until its handler returns.
//
// Thread rule: one thread may read while another one writes.
#ifndef VERBENA_RPC_SYNC_STREAM_H_
#define VERBENA_RPC_SYNC_STREAM_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_stream.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/sync_server_stream.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc {
namespace internal {

class ClientStreamingInterface {
 public:
  virtual ~ClientStreamingInterface() = default;
  // How the call ended; waits for it. Once, when there is nothing more to
  // write. What was not read is thrown away.
  virtual Status Finish() = 0;
};

class ServerStreamingInterface {
 public:
  virtual ~ServerStreamingInterface() = default;
  // Sends the initial metadata now, and not with the first message.
  virtual void SendInitialMetadata() = 0;
};

template <class R>
class ReaderInterface {
 public:
  virtual ~ReaderInterface() = default;
  // The most bytes that the next message may have.
  virtual bool NextMessageSize(uint32_t* size) = 0;
  // Waits for the next message. False: there is none; Finish says why.
  virtual bool Read(R* message) = 0;

 protected:
  // Protobuf's limit.
  static constexpr uint32_t kMostBytes = std::numeric_limits<int32_t>::max();
};

template <class W>
class WriterInterface {
 public:
  virtual ~WriterInterface() = default;
  // False: the call is over or ends, or a message of this direction was the
  // last; Finish says why.
  virtual bool Write(const W& message, WriteOptions options) = 0;
  bool Write(const W& message) { return Write(message, WriteOptions()); }
  void WriteLast(const W& message, WriteOptions options) {
    Write(message, std::move(options.set_last_message()));
  }
};

}  // namespace internal

// ---- Client ----

template <class R>
class ClientReaderInterface : public internal::ClientStreamingInterface,
                              public internal::ReaderInterface<R> {
 public:
  // Waits until the server's initial metadata is in the context.
  virtual void WaitForInitialMetadata() = 0;
};

template <class W>
class ClientWriterInterface : public internal::ClientStreamingInterface,
                              public internal::WriterInterface<W> {
 public:
  // Says that no further message comes.
  virtual bool WritesDone() = 0;
};

template <class W, class R>
class ClientReaderWriterInterface : public internal::ClientStreamingInterface,
                                    public internal::WriterInterface<W>,
                                    public internal::ReaderInterface<R> {
 public:
  virtual void WaitForInitialMetadata() = 0;
  virtual bool WritesDone() = 0;
};

namespace internal {
template <class R>
class ClientReaderFactory;
template <class W>
class ClientWriterFactory;
template <class W, class R>
class ClientReaderWriterFactory;
}  // namespace internal

template <class R>
class ClientReader final : public ClientReaderInterface<R> {
 public:
  ~ClientReader() override { stream_->Abandon(); }

  void WaitForInitialMetadata() override {
    stream_->BlockingWaitForInitialMetadata();
  }
  bool NextMessageSize(uint32_t* size) override {
    *size = this->kMostBytes;
    return true;
  }
  bool Read(R* message) override {
    return stream_->BlockingRead(message, nullptr);
  }
  bool Read(R* message, BufferChain* attachment) {
    return stream_->BlockingRead(message, attachment);
  }
  Status Finish() override { return stream_->BlockingFinish(); }

 private:
  friend class internal::ClientReaderFactory<R>;
  explicit ClientReader(std::shared_ptr<internal::ClientStream> stream)
      : stream_(std::move(stream)) {}

  const std::shared_ptr<internal::ClientStream> stream_;
};

template <class W>
class ClientWriter final : public ClientWriterInterface<W> {
 public:
  ~ClientWriter() override { stream_->Abandon(); }

  void WaitForInitialMetadata() { stream_->BlockingWaitForInitialMetadata(); }
  using internal::WriterInterface<W>::Write;
  bool Write(const W& message, WriteOptions options) override {
    return stream_->BlockingWrite(message, std::move(options));
  }
  bool WritesDone() override { return stream_->BlockingWritesDone(); }
  // Where the status is OK, the response is there.
  Status Finish() override { return stream_->BlockingFinish(response_); }

 private:
  friend class internal::ClientWriterFactory<W>;
  ClientWriter(std::shared_ptr<internal::ClientStream> stream,
               internal::MessageRef response)
      : stream_(std::move(stream)), response_(response) {}

  const std::shared_ptr<internal::ClientStream> stream_;
  const internal::MessageRef response_;
};

template <class W, class R>
class ClientReaderWriter final : public ClientReaderWriterInterface<W, R> {
 public:
  ~ClientReaderWriter() override { stream_->Abandon(); }

  void WaitForInitialMetadata() override {
    stream_->BlockingWaitForInitialMetadata();
  }
  bool NextMessageSize(uint32_t* size) override {
    *size = this->kMostBytes;
    return true;
  }
  bool Read(R* message) override {
    return stream_->BlockingRead(message, nullptr);
  }
  bool Read(R* message, BufferChain* attachment) {
    return stream_->BlockingRead(message, attachment);
  }
  using internal::WriterInterface<W>::Write;
  bool Write(const W& message, WriteOptions options) override {
    return stream_->BlockingWrite(message, std::move(options));
  }
  bool WritesDone() override { return stream_->BlockingWritesDone(); }
  Status Finish() override { return stream_->BlockingFinish(); }

 private:
  friend class internal::ClientReaderWriterFactory<W, R>;
  explicit ClientReaderWriter(std::shared_ptr<internal::ClientStream> stream)
      : stream_(std::move(stream)) {}

  const std::shared_ptr<internal::ClientStream> stream_;
};

namespace internal {

// What generated stubs call. The caller owns what Create returns.
template <class R>
class ClientReaderFactory {
 public:
  template <class W>
  static ClientReader<R>* Create(ChannelInterface* channel,
                                 const RpcMethod& method,
                                 ClientContext* context, const W& request) {
    return new ClientReader<R>(
        ClientStream::Start(channel, method, context, request));
  }
};

template <class W>
class ClientWriterFactory {
 public:
  template <class R>
  static ClientWriter<W>* Create(ChannelInterface* channel,
                                 const RpcMethod& method,
                                 ClientContext* context, R* response) {
    return new ClientWriter<W>(
        ClientStream::Start(channel, method, context, ConstMessageRef()),
        response);
  }
};

template <class W, class R>
class ClientReaderWriterFactory {
 public:
  static ClientReaderWriter<W, R>* Create(ChannelInterface* channel,
                                          const RpcMethod& method,
                                          ClientContext* context) {
    return new ClientReaderWriter<W, R>(
        ClientStream::Start(channel, method, context, ConstMessageRef()));
  }
};

}  // namespace internal

// ---- Server ----

template <class R>
class ServerReaderInterface : public internal::ServerStreamingInterface,
                              public internal::ReaderInterface<R> {};

template <class W>
class ServerWriterInterface : public internal::ServerStreamingInterface,
                              public internal::WriterInterface<W> {};

template <class W, class R>
class ServerReaderWriterInterface : public internal::ServerStreamingInterface,
                                    public internal::WriterInterface<W>,
                                    public internal::ReaderInterface<R> {};

template <class R>
class ServerReader final : public ServerReaderInterface<R> {
 public:
  // For generated code.
  explicit ServerReader(internal::SyncServerStream* stream)
      : stream_(*stream) {}

  void SendInitialMetadata() override { stream_.SendInitialMetadata(); }
  bool NextMessageSize(uint32_t* size) override {
    *size = this->kMostBytes;
    return true;
  }
  bool Read(R* message) override {
    return stream_.BlockingRead(message, nullptr);
  }
  bool Read(R* message, BufferChain* attachment) {
    return stream_.BlockingRead(message, attachment);
  }

 private:
  internal::SyncServerStream& stream_;
};

template <class W>
class ServerWriter final : public ServerWriterInterface<W> {
 public:
  // For generated code.
  explicit ServerWriter(internal::SyncServerStream* stream)
      : stream_(*stream) {}

  void SendInitialMetadata() override { stream_.SendInitialMetadata(); }
  using internal::WriterInterface<W>::Write;
  bool Write(const W& message, WriteOptions options) override {
    return stream_.BlockingWrite(message, std::move(options));
  }

 private:
  internal::SyncServerStream& stream_;
};

template <class W, class R>
class ServerReaderWriter final : public ServerReaderWriterInterface<W, R> {
 public:
  // For generated code.
  explicit ServerReaderWriter(internal::SyncServerStream* stream)
      : stream_(*stream) {}

  void SendInitialMetadata() override { stream_.SendInitialMetadata(); }
  bool NextMessageSize(uint32_t* size) override {
    *size = this->kMostBytes;
    return true;
  }
  bool Read(R* message) override {
    return stream_.BlockingRead(message, nullptr);
  }
  bool Read(R* message, BufferChain* attachment) {
    return stream_.BlockingRead(message, attachment);
  }
  using internal::WriterInterface<W>::Write;
  bool Write(const W& message, WriteOptions options) override {
    return stream_.BlockingWrite(message, std::move(options));
  }

 private:
  internal::SyncServerStream& stream_;
};

namespace internal {

// What a method that does not stream, or streams one way only, looks like to a
// handler that was asked for as a stream: at most one message of a direction.
template <class Request, class Response>
class ServerStreamer : public ServerReaderWriterInterface<Response, Request> {
 public:
  void SendInitialMetadata() override { stream_.SendInitialMetadata(); }
  bool NextMessageSize(uint32_t* size) override {
    if (read_) return false;
    *size = this->kMostBytes;
    return true;
  }
  // The request; once.
  bool Read(Request* request) override {
    return !std::exchange(read_, true) &&
           stream_.BlockingRead(request, nullptr);
  }

 protected:
  explicit ServerStreamer(SyncServerStream* stream) : stream_(*stream) {}

  SyncServerStream& stream_;

 private:
  bool read_ = false;
};

}  // namespace internal

// A unary method, of a service with WithStreamedUnaryMethod_X.
template <class Request, class Response>
class ServerUnaryStreamer final
    : public internal::ServerStreamer<Request, Response> {
 public:
  // For generated code.
  explicit ServerUnaryStreamer(internal::SyncServerStream* stream)
      : ServerUnaryStreamer::ServerStreamer(stream) {}

  using internal::WriterInterface<Response>::Write;
  // The response; once.
  bool Write(const Response& response, WriteOptions options) override {
    return !std::exchange(written_, true) &&
           this->stream_.BlockingWrite(response, std::move(options));
  }

  // For generated code: whether the handler may say OK.
  bool has_responded() const { return written_; }

 private:
  bool written_ = false;
};

// A method whose server streams, of a service with WithSplitStreamingMethod_X.
template <class Request, class Response>
class ServerSplitStreamer final
    : public internal::ServerStreamer<Request, Response> {
 public:
  // For generated code.
  explicit ServerSplitStreamer(internal::SyncServerStream* stream)
      : ServerSplitStreamer::ServerStreamer(stream) {}

  using internal::WriterInterface<Response>::Write;
  bool Write(const Response& response, WriteOptions options) override {
    return this->stream_.BlockingWrite(response, std::move(options));
  }

  // For generated code: there need be none.
  bool has_responded() const { return true; }
};

}  // namespace rpc

#endif  // VERBENA_RPC_SYNC_STREAM_H_
