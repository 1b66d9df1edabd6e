// What the tests of bad input call: methods of all kinds that do as the request
// says, and calls of any kind with messages of any type.
//
//   ParcelService service;
//   const auto result = Exchange<Forgery, Parcel>(
//       channel, RpcType::BIDI_STREAMING, "/e2e.Parcels/Chat", &context,
//       {ForgeryOf(100)});
//   EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL));
//
// Thread rule: services are thread-safe, the rest has no state.
#ifndef VERBENA_TESTS_E2E_PARCELS_H_
#define VERBENA_TESTS_E2E_PARCELS_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/generated_code.h"
#include "rpc/rpc.h"
#include "tests/e2e/parcels.rpc.pb.h"

namespace e2e {

using RpcType = rpc::internal::RpcMethod::RpcType;

inline constexpr RpcType kAllTypes[] = {
    RpcType::NORMAL_RPC, RpcType::CLIENT_STREAMING, RpcType::SERVER_STREAMING,
    RpcType::BIDI_STREAMING};

inline bool ClientStreams(RpcType type) {
  return type == RpcType::CLIENT_STREAMING || type == RpcType::BIDI_STREAMING;
}
inline bool ServerStreams(RpcType type) {
  return type == RpcType::SERVER_STREAMING || type == RpcType::BIDI_STREAMING;
}
// "Upload".
const char* MethodOf(RpcType type);

// ---- For tests.

std::string NameOfType(const testing::TestParamInfo<RpcType>& info);
// Whether the status' text has `text` in it.
bool Names(const rpc::Status& status, const std::string& text);

// ---- Messages.

Parcel ParcelOf(size_t content_bytes);
// For `responses` responses with so much content each.
Parcel ParcelFor(int responses, size_t response_bytes = 0);
// `bytes` bytes, 1 at least, that are no Content.
Forgery ForgeryOf(size_t bytes);

// ---- The server.

template <class Base, class Response>
class Answering final : public Base {
 public:
  using Prepare = std::function<void(rpc::ServerContext*)>;

  // What every handler does first.
  explicit Answering(Prepare prepare = [](rpc::ServerContext*) {})
      : prepare_(std::move(prepare)) {}

  rpc::Status Unary(rpc::ServerContext* context, const Parcel* request,
                    Response* response) override;
  rpc::Status Upload(rpc::ServerContext* context,
                     rpc::ServerReader<Parcel>* reader,
                     Response* response) override;
  rpc::Status Download(rpc::ServerContext* context, const Parcel* request,
                       rpc::ServerWriter<Response>* writer) override;
  rpc::Status Chat(rpc::ServerContext* context,
                   rpc::ServerReaderWriter<Response, Parcel>* stream) override;

  // Of streams, before the first message.
  std::atomic<bool> initial_metadata_alone{false};

  // Handlers that began, that run, and that ended cut off; what they read.
  std::atomic<int> begun{0};
  std::atomic<int> running{0};
  std::atomic<int> cut_off{0};
  std::atomic<int> read{0};

 private:
  void Begin(rpc::ServerContext* context,
             rpc::internal::ServerStreamingInterface* stream = nullptr) {
    ++begun;
    ++running;
    prepare_(context);
    if (initial_metadata_alone && stream != nullptr) {
      stream->SendInitialMetadata();
    }
  }
  rpc::Status End(rpc::ServerContext* context,
                  rpc::Status status = rpc::Status::OK) {
    if (context->IsCancelled()) ++cut_off;
    --running;
    return status;
  }

  const Prepare prepare_;
};

using ParcelService = Answering<Parcels::Service, Parcel>;
using ForgeryService = Answering<Forgeries::Service, Forgery>;

// ---- The client.

template <class R>
struct Exchanged {
  rpc::Status status;
  std::vector<R> responses;
};

// Calls a method as one of this type, with messages W and R, whatever its own
// are: sends all requests (a type that has one: the first), says that this was
// all, and takes what comes.
template <class W, class R>
Exchanged<R> Exchange(const std::shared_ptr<rpc::Channel>& channel,
                      RpcType type, const std::string& path,
                      rpc::ClientContext* context,
                      const std::vector<W>& requests);

// ---- Implementation.

void Fill(const Parcel& request, int index, Parcel* response);
void Fill(const Parcel& request, int index, Forgery* response);
rpc::Status EndOf(const Parcel& request);

template <class Base, class Response>
rpc::Status Answering<Base, Response>::Unary(rpc::ServerContext* context,
                                             const Parcel* request,
                                             Response* response) {
  Begin(context);
  Fill(*request, 0, response);
  return End(context);
}

template <class Base, class Response>
rpc::Status Answering<Base, Response>::Upload(rpc::ServerContext* context,
                                              rpc::ServerReader<Parcel>* reader,
                                              Response* response) {
  Begin(context, reader);
  Parcel request;
  while (reader->Read(&request)) {
    ++read;
    Fill(request, 0, response);
    if (request.end()) return End(context, EndOf(request));
  }
  return End(context);
}

template <class Base, class Response>
rpc::Status Answering<Base, Response>::Download(
    rpc::ServerContext* context, const Parcel* request,
    rpc::ServerWriter<Response>* writer) {
  Begin(context, writer);
  Response response;
  for (int i = 0; i < request->responses(); ++i) {
    Fill(*request, i, &response);
    if (!writer->Write(response)) break;
  }
  return End(context);
}

template <class Base, class Response>
rpc::Status Answering<Base, Response>::Chat(
    rpc::ServerContext* context,
    rpc::ServerReaderWriter<Response, Parcel>* stream) {
  Begin(context, stream);
  Parcel request;
  Response response;
  while (stream->Read(&request)) {
    ++read;
    if (request.end()) return End(context, EndOf(request));
    for (int i = 0; i < request.responses(); ++i) {
      Fill(request, i, &response);
      if (!stream->Write(response)) return End(context);
    }
  }
  return End(context);
}

template <class W, class R>
Exchanged<R> Exchange(const std::shared_ptr<rpc::Channel>& channel,
                      RpcType type, const std::string& path,
                      rpc::ClientContext* context,
                      const std::vector<W>& requests) {
  const rpc::internal::RpcMethod method(path.c_str(), type, channel);
  Exchanged<R> result;
  R response;
  const auto send = [&](auto& stream) {
    for (const W& request : requests) {
      if (!stream->Write(request)) return;
    }
    stream->WritesDone();
  };
  const auto receive = [&](auto& stream) {
    while (stream->Read(&response)) result.responses.push_back(response);
  };
  switch (type) {
    case RpcType::NORMAL_RPC:
      result.status = rpc::internal::BlockingUnaryCall(
          channel.get(), method, context, requests.front(), &response);
      break;
    case RpcType::CLIENT_STREAMING: {
      const std::unique_ptr<rpc::ClientWriter<W>> stream(
          rpc::internal::ClientWriterFactory<W>::Create(channel.get(), method,
                                                        context, &response));
      send(stream);
      result.status = stream->Finish();
      break;
    }
    case RpcType::SERVER_STREAMING: {
      const std::unique_ptr<rpc::ClientReader<R>> stream(
          rpc::internal::ClientReaderFactory<R>::Create(
              channel.get(), method, context, requests.front()));
      receive(stream);
      result.status = stream->Finish();
      break;
    }
    case RpcType::BIDI_STREAMING: {
      const std::unique_ptr<rpc::ClientReaderWriter<W, R>> stream(
          rpc::internal::ClientReaderWriterFactory<W, R>::Create(
              channel.get(), method, context));
      send(stream);
      receive(stream);
      result.status = stream->Finish();
      break;
    }
  }
  if (!ServerStreams(type) && result.status.ok()) {
    result.responses.push_back(response);
  }
  return result;
}

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_PARCELS_H_
