// The reactors of streams on the server: a handler of the callback API returns
// one, and the call ends when somebody calls its Finish.
//
//   class Lister final : public rpc::ServerWriteReactor<Feature> {
//    public:
//     explicit Lister(std::vector<Feature> features)
//         : features_(std::move(features)) { Next(); }
//     void OnWriteDone(bool ok) override {
//       ok ? Next() : Finish(rpc::Status::CANCELLED);
//     }
//     void OnDone() override { delete this; }
//    private:
//     void Next() {
//       if (next_ == features_.size()) return Finish(rpc::Status::OK);
//       StartWrite(&features_[next_++]);
//     }
//     const std::vector<Feature> features_;
//     size_t next_ = 0;
//   };
//
// Each Start is answered by one reaction, which says whether it went well; a
// call that is over answers false. At most one read and one write at a time.
// Starts may come before the handler returned. Messages are needed until the
// reaction; the handler's request, response and context until OnDone.
//
// Beyond gRPC: attachments, each beside a message.
//
// Thread rule: Starts and Finish from any thread, one at a time of each kind.
// Reactions run one at a time, on whichever thread drives the transport, and
// must not block for long. They hold no lock, and never run on the stack of a
// Start.
#ifndef VERBENA_RPC_SERVER_STREAM_CALLBACK_H_
#define VERBENA_RPC_SERVER_STREAM_CALLBACK_H_

#include <utility>

#include "rpc/buffer.h"
#include "rpc/internal/server_stream_reactor.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc {
namespace internal {

// What a reactor of either kind adds to its base.
template <class Request, class Base>
class ServerReading : public Base {
 public:
  void StartRead(Request* message) { StartRead(message, nullptr); }
  // `attachment` gets what came beside the message; may be null.
  void StartRead(Request* message, BufferChain* attachment) {
    this->BeginRead(message, attachment);
  }
  // False: there is no further message, or it does not parse.
  void OnReadDone(bool /*ok*/) override {}
};

template <class Response, class Base>
class ServerWriting : public Base {
 public:
  void StartWrite(const Response* message) {
    StartWrite(message, WriteOptions());
  }
  void StartWrite(const Response* message, WriteOptions options) {
    this->BeginWrite(*message, std::move(options));
  }
  void StartWriteLast(const Response* message, WriteOptions options) {
    StartWrite(message, std::move(options.set_last_message()));
  }
  // StartWrite and Finish at once; OnDone alone tells.
  void StartWriteAndFinish(const Response* message, WriteOptions options,
                           Status status) {
    this->BeginWriteAndFinish(*message, std::move(options), std::move(status));
  }
  // The message is on its way, and the next may be started. False: nobody will
  // read it.
  void OnWriteDone(bool /*ok*/) override {}
};

}  // namespace internal

// The client streams; the response goes with Finish, where it says OK.
template <class Request>
class ServerReadReactor
    : public internal::ServerReading<Request, internal::ServerStreamReactor> {};

// The server streams.
template <class Response>
class ServerWriteReactor
    : public internal::ServerWriting<Response, internal::ServerStreamReactor> {
};

// Both do.
template <class Request, class Response>
class ServerBidiReactor
    : public internal::ServerWriting<
          Response,
          internal::ServerReading<Request, internal::ServerStreamReactor>> {};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_STREAM_CALLBACK_H_
