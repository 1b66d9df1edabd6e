#include "tests/e2e/calls_by_api.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/e2e/client_reactors.h"
#include "tests/rpc/queue_events.h"

namespace e2e {
namespace {

using rpc::testing::QueueEvents;
using rpc::testing::Tag;
using Result = Exchanged<Parcel>;

constexpr int kCount = 2;

Parcel RequestOf(RpcType type) {
  return ParcelFor(type == RpcType::SERVER_STREAMING ? kCount : 1);
}

// ---- Callbacks.

Result UnaryByCallback(Parcels::Stub& stub, rpc::ClientContext* context) {
  const Parcel request = RequestOf(RpcType::NORMAL_RPC);
  Result result;
  Parcel response;
  absl::Notification done;
  stub.async()->Unary(context, &request, &response, [&](rpc::Status status) {
    result.status = std::move(status);
    done.Notify();
  });
  done.WaitForNotification();
  if (result.status.ok()) result.responses.push_back(response);
  return result;
}

Result UploadByCallback(Parcels::Stub& stub, rpc::ClientContext* context) {
  const Parcel request = RequestOf(RpcType::CLIENT_STREAMING);
  Result result;
  Parcel response;
  int left = kCount;
  Reactor<rpc::ClientWriteReactor<Parcel>> reactor;
  reactor.on_write = [&](bool ok) {
    if (ok && --left > 0) return reactor.Write(&request);
    reactor.WritesDone();
  };
  stub.async()->Upload(context, &response, &reactor);
  reactor.Write(&request);
  reactor.Start();
  result.status = reactor.Wait();
  if (result.status.ok()) result.responses.push_back(response);
  return result;
}

Result DownloadByCallback(Parcels::Stub& stub, rpc::ClientContext* context) {
  const Parcel request = RequestOf(RpcType::SERVER_STREAMING);
  Result result;
  Parcel response;
  Reactor<rpc::ClientReadReactor<Parcel>> reactor;
  reactor.on_read = [&](bool ok) {
    if (!ok) return;
    result.responses.push_back(response);
    reactor.Read(&response);
  };
  stub.async()->Download(context, &request, &reactor);
  reactor.Read(&response);
  reactor.Start();
  result.status = reactor.Wait();
  return result;
}

Result ChatByCallback(Parcels::Stub& stub, rpc::ClientContext* context) {
  const Parcel request = RequestOf(RpcType::BIDI_STREAMING);
  Result result;
  Parcel response;
  int left = kCount;
  Reactor<rpc::ClientBidiReactor<Parcel, Parcel>> reactor;
  reactor.on_write = [&](bool ok) {
    if (ok && --left > 0) return reactor.Write(&request);
    reactor.WritesDone();
  };
  reactor.on_read = [&](bool ok) {
    if (!ok) return;
    result.responses.push_back(response);
    reactor.Read(&response);
  };
  stub.async()->Chat(context, &reactor);
  reactor.Read(&response);
  reactor.Write(&request);
  reactor.Start();
  result.status = reactor.Wait();
  return result;
}

Result ByCallback(RpcType type, Parcels::Stub& stub,
                  rpc::ClientContext* context) {
  switch (type) {
    case RpcType::NORMAL_RPC:
      return UnaryByCallback(stub, context);
    case RpcType::CLIENT_STREAMING:
      return UploadByCallback(stub, context);
    case RpcType::SERVER_STREAMING:
      return DownloadByCallback(stub, context);
    case RpcType::BIDI_STREAMING:
      return ChatByCallback(stub, context);
  }
  return Result();
}

// ---- Queues.

enum : int { kStart = 1, kSend, kSendsDone, kReceive, kEnd };

// A call that cannot begin says why at its end.
void AwaitStart(QueueEvents& events) {
  bool ok;
  EXPECT_TRUE(events.Get(kStart, &ok));
}

template <class Stream>
void SendByQueue(QueueEvents& events, Stream& stream, const Parcel& request) {
  bool ok = true;
  for (int i = 0; i < kCount && ok; ++i) {
    stream.Write(request, Tag(kSend));
    EXPECT_TRUE(events.Get(kSend, &ok));
  }
  stream.WritesDone(Tag(kSendsDone));
  EXPECT_TRUE(events.Get(kSendsDone, &ok));
}

template <class Stream>
void ReceiveByQueue(QueueEvents& events, Stream& stream, Result& result) {
  Parcel response;
  bool ok = true;
  while (ok) {
    stream.Read(&response, Tag(kReceive));
    EXPECT_TRUE(events.Get(kReceive, &ok));
    if (ok) result.responses.push_back(response);
  }
}

template <class Stream>
void EndByQueue(QueueEvents& events, Stream& stream, Result& result) {
  stream.Finish(&result.status, Tag(kEnd));
  EXPECT_TRUE(events.Comes(kEnd));
}

template <class Stream>
void ChatByQueue(QueueEvents& events, Stream& stream, Result& result) {
  AwaitStart(events);
  SendByQueue(events, stream, RequestOf(RpcType::BIDI_STREAMING));
  ReceiveByQueue(events, stream, result);
  EndByQueue(events, stream, result);
}

Result ByQueue(RpcType type, Parcels::Stub& stub, rpc::ClientContext* context) {
  QueueEvents events;
  rpc::CompletionQueue* const queue = events.queue();
  const Parcel request = RequestOf(type);
  Result result;
  Parcel response;
  switch (type) {
    case RpcType::NORMAL_RPC:
      stub.AsyncUnary(context, request, queue)
          ->Finish(&response, &result.status, Tag(kEnd));
      EXPECT_TRUE(events.Comes(kEnd));
      break;
    case RpcType::CLIENT_STREAMING: {
      auto stream = stub.AsyncUpload(context, &response, queue, Tag(kStart));
      AwaitStart(events);
      SendByQueue(events, *stream, request);
      EndByQueue(events, *stream, result);
      break;
    }
    case RpcType::SERVER_STREAMING: {
      auto stream = stub.AsyncDownload(context, request, queue, Tag(kStart));
      AwaitStart(events);
      ReceiveByQueue(events, *stream, result);
      EndByQueue(events, *stream, result);
      break;
    }
    case RpcType::BIDI_STREAMING:
      ChatByQueue(events, *stub.AsyncChat(context, queue, Tag(kStart)), result);
      break;
  }
  if (!ServerStreams(type) && result.status.ok()) {
    result.responses.push_back(response);
  }
  return result;
}

// ---- Coroutines.

rpc::Task<Result> ByCoroutine(RpcType type, Parcels::Stub* stub,
                              rpc::ClientContext* context) {
  const Parcel request = RequestOf(type);
  Result result;
  Parcel response;
  switch (type) {
    case RpcType::NORMAL_RPC:
      result.status = co_await stub->coro()->Unary(context, request, &response);
      break;
    case RpcType::CLIENT_STREAMING: {
      auto stream = stub->coro()->Upload(context, &response);
      for (int i = 0; i < kCount; ++i) co_await stream->Write(request);
      co_await stream->WritesDone();
      result.status = co_await stream->Finish();
      break;
    }
    case RpcType::SERVER_STREAMING: {
      auto stream = stub->coro()->Download(context, request);
      while (co_await stream->Read(&response)) {
        result.responses.push_back(response);
      }
      result.status = co_await stream->Finish();
      break;
    }
    case RpcType::BIDI_STREAMING: {
      auto stream = stub->coro()->Chat(context);
      for (int i = 0; i < kCount; ++i) co_await stream->Write(request);
      co_await stream->WritesDone();
      while (co_await stream->Read(&response)) {
        result.responses.push_back(response);
      }
      result.status = co_await stream->Finish();
      break;
    }
  }
  if (!ServerStreams(type) && result.status.ok()) {
    result.responses.push_back(response);
  }
  co_return result;
}

// ---- Generic stubs; streams of any kind are of both directions.

Result ByGenericStub(RpcType type, const std::shared_ptr<rpc::Channel>& channel,
                     rpc::ClientContext* context) {
  rpc::TemplatedGenericStub<Parcel, Parcel> stub(channel);
  const std::string path = absl::StrCat("/e2e.Parcels/", MethodOf(type));
  const Parcel request = RequestOf(type);
  QueueEvents events;
  Result result;
  if (type == RpcType::NORMAL_RPC) {
    Parcel response;
    auto call = stub.PrepareUnaryCall(context, path, request, events.queue());
    call->StartCall();
    call->Finish(&response, &result.status, Tag(kEnd));
    EXPECT_TRUE(events.Comes(kEnd));
    if (result.status.ok()) result.responses.push_back(response);
    return result;
  }
  auto stream = stub.Call(context, path, events.queue(), Tag(kStart));
  if (ClientStreams(type)) {
    ChatByQueue(events, *stream, result);
    return result;
  }
  AwaitStart(events);
  stream->WriteLast(request, rpc::WriteOptions(), Tag(kSend));
  bool ok;
  EXPECT_TRUE(events.Get(kSend, &ok));
  ReceiveByQueue(events, *stream, result);
  EndByQueue(events, *stream, result);
  return result;
}

}  // namespace

std::string NameOf(ClientApi api) {
  switch (api) {
    case ClientApi::kBlocking:
      return "Blocking";
    case ClientApi::kCallback:
      return "Callback";
    case ClientApi::kQueue:
      return "Queue";
    case ClientApi::kCoroutine:
      return "Coroutine";
    case ClientApi::kGeneric:
      return "Generic";
  }
  return "";
}

Exchanged<Parcel> Call(ClientApi api, RpcType type,
                       const std::shared_ptr<rpc::Channel>& channel,
                       rpc::ClientContext* context) {
  const std::unique_ptr<Parcels::Stub> stub = Parcels::NewStub(channel);
  switch (api) {
    case ClientApi::kBlocking: {
      const size_t count = ClientStreams(type) ? kCount : 1;
      return Exchange<Parcel, Parcel>(
          channel, type, absl::StrCat("/e2e.Parcels/", MethodOf(type)), context,
          std::vector<Parcel>(count, RequestOf(type)));
    }
    case ClientApi::kCallback:
      return ByCallback(type, *stub, context);
    case ClientApi::kQueue:
      return ByQueue(type, *stub, context);
    case ClientApi::kCoroutine:
      return rpc::SyncWait(ByCoroutine(type, stub.get(), context));
    case ClientApi::kGeneric:
      return ByGenericStub(type, channel, context);
  }
  return Result();
}

}  // namespace e2e
