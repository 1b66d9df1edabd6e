#include "tests/e2e/raw_peers.h"

#include <cstddef>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/e2e/device_under_test.h"

namespace e2e {
namespace {

absl::Span<const std::byte> AsBytes(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

// Refers to `raw`.
rpc::OutgoingFrame ToFrame(const RawFrame& raw) {
  rpc::OutgoingFrame frame;
  frame.header = AsBytes(raw.header);
  frame.has_message = raw.has_message;
  frame.small_message = AsBytes(raw.message);
  frame.end = raw.end;
  frame.status_code = raw.status_code;
  return frame;
}

void AppendString(std::string_view bytes, std::string& block) {
  block.push_back(static_cast<char>(bytes.size()));
  block.append(bytes);
}

// Of a call on the client.
struct MadeCall final : rpc::CallSink {
  void OnFrame(rpc::IncomingFrame& frame) override {
    if (frame.end) code = static_cast<rpc::StatusCode>(frame.status_code);
  }
  void OnClosed(const rpc::CallOutcome& outcome) override {
    if (!outcome.status.ok()) {
      code = static_cast<rpc::StatusCode>(outcome.status.code());
    }
    closed.Set();
  }

  rpc::StatusCode code = rpc::StatusCode::UNKNOWN;
  rpc::Event closed;
};

// Of a call on the server: what the client says does not matter.
struct AnsweredCall final : rpc::CallSink {
  void OnFrame(rpc::IncomingFrame& frame) override {}
  void OnClosed(const rpc::CallOutcome& outcome) override { delete this; }
};

}  // namespace

std::string HeaderEntry(EntryKind kind, std::string_view key,
                        std::string_view value) {
  std::string block(1, kind);
  if (kind != kStatusMessage) AppendString(key, block);
  AppendString(value, block);
  return block;
}

rpc::StatusCode CallRaw(rpc::Channel& channel, const char* path,
                        const std::vector<RawFrame>& frames) {
  rpc::ClientTransport& transport = *channel.call_target().transport;
  rpc::CallOptions options;
  options.method = channel.RegisterMethod(path);
  options.deadline = absl::Now() + absl::Seconds(60);
  MadeCall sink;
  const rpc::CallHandle call =
      transport.StartCall(options, ToFrame(frames.front()), &sink);
  for (size_t i = 1; i < frames.size(); ++i) {
    transport.Send(call, ToFrame(frames[i]));
  }
  transport.Wait(sink.closed);
  return sink.code;
}

RawServer::RawServer() : status_(Listen()) {}

RawServer::~RawServer() {
  if (transport_ != nullptr) transport_->Shutdown(absl::Now());
}

absl::Status RawServer::Listen() {
  absl::StatusOr<rpc::TransportFactory*> factory =
      rpc::TransportFactory::ForAddress(ServerUri());
  if (!factory.ok()) return factory.status();
  rpc::TransportOptions options;
  options.device = TheDeviceUnderTest().server_device;
  absl::StatusOr<std::unique_ptr<rpc::ServerTransport>> transport =
      (*factory)->CreateServer(options);
  if (!transport.ok()) return transport.status();
  transport_ = *std::move(transport);
  const absl::StatusOr<int> port = transport_->AddListeningPort(ServerUri());
  if (!port.ok()) return port.status();
  port_ = *port;
  return transport_->Start(this);
}

std::string RawServer::address() const { return ServerUri(port_); }

void RawServer::SetAnswer(std::vector<RawFrame> frames) {
  absl::MutexLock lock(&mutex_);
  answer_ = std::move(frames);
}

std::string RawServer::last_peer() const {
  absl::MutexLock lock(&mutex_);
  return last_peer_;
}

rpc::CallSink* RawServer::OnCall(const Call& call, rpc::IncomingFrame& frame) {
  absl::MutexLock lock(&mutex_);
  last_peer_ = std::string(call.peer);
  for (const RawFrame& raw : answer_) {
    transport_->Send(call.handle, ToFrame(raw));
  }
  return new AnsweredCall();
}

}  // namespace e2e
