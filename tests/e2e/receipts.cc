#include "tests/e2e/receipts.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/buffer.h"
#include "tests/e2e/device_under_test.h"

namespace e2e {
namespace {

rpc::TransportFactory& Factory() {
  return **rpc::TransportFactory::ForAddress(ServerUri());
}

absl::Span<const std::byte> BytesOf(const uint64_t& number) {
  return {reinterpret_cast<const std::byte*>(&number), sizeof(number)};
}

}  // namespace

// ---- Server.

// What the client says further does not matter.
class ReceiptServer::Sink final : public rpc::CallSink {
  void OnFrame(rpc::IncomingFrame& frame) override {}
  void OnClosed(const rpc::CallOutcome& outcome) override { delete this; }
};

ReceiptServer::ReceiptServer(rpc::TransportOptions options) {
  options.device = TheDeviceUnderTest().server_device;
  transport_ = *Factory().CreateServer(options);
  address_ = ServerUri(*transport_->AddListeningPort(ServerUri()));
  const absl::Status started = transport_->Start(this);
  EXPECT_TRUE(started.ok()) << started;
}

ReceiptServer::~ReceiptServer() { Shutdown(absl::InfinitePast()); }

rpc::CallSink* ReceiptServer::OnCall(const Call& call,
                                     rpc::IncomingFrame& frame) {
  uint64_t number = 0;
  EXPECT_EQ(frame.message.size(), sizeof(number));
  frame.message.CopyTo(reinterpret_cast<std::byte*>(&number));
  bool answer;
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(seen_.insert(number).second) << number << " was seen twice";
    peers_.insert(std::string(call.peer));
    last_thread_ = std::this_thread::get_id();
    answer = answer_;
    if (!answer) held_.push_back(call.handle);
  }
  if (answer) SendAnswer(call.handle);
  return new Sink();
}

void ReceiptServer::SendAnswer(rpc::CallHandle call) {
  rpc::OutgoingFrame frame;
  frame.has_message = frame.end = true;
  transport_->Send(call, std::move(frame));
}

void ReceiptServer::Answer(bool answer) {
  std::vector<rpc::CallHandle> held;
  {
    absl::MutexLock lock(&mutex_);
    answer_ = answer;
    if (answer) held.swap(held_);
  }
  for (const rpc::CallHandle call : held) SendAnswer(call);
}

bool ReceiptServer::Saw(uint64_t number) const {
  absl::MutexLock lock(&mutex_);
  return seen_.count(number) > 0;
}

size_t ReceiptServer::calls() const {
  absl::MutexLock lock(&mutex_);
  return seen_.size();
}

size_t ReceiptServer::held() const {
  absl::MutexLock lock(&mutex_);
  return held_.size();
}

size_t ReceiptServer::connections() const {
  absl::MutexLock lock(&mutex_);
  return peers_.size();
}

std::thread::id ReceiptServer::last_thread() const {
  absl::MutexLock lock(&mutex_);
  return last_thread_;
}

// ---- Client.

class ReceiptClient::Sink final : public rpc::CallSink {
 public:
  Receipt receipt;
  rpc::Event closed;

 private:
  void OnFrame(rpc::IncomingFrame& frame) override {}
  void OnClosed(const rpc::CallOutcome& outcome) override {
    receipt = {outcome.status, outcome.may_have_run};
    closed.Set();
  }
};

ReceiptClient::ReceiptClient(const std::string& address,
                             size_t attachment_bytes)
    : transport_([&] {
        rpc::TransportOptions options;
        options.device = TheDeviceUnderTest().client_device;
        options.share_connection = false;
        return *Factory().CreateClient(address, options);
      }()),
      attachment_bytes_(attachment_bytes),
      method_(transport_->RegisterMethod("/e2e.Receipts/Call")) {}

ReceiptClient::~ReceiptClient() {
  absl::MutexLock lock(&mutex_);
  EXPECT_TRUE(calls_.empty());
}

uint64_t ReceiptClient::Start() {
  static std::atomic<uint64_t> next{1};
  const uint64_t number = next.fetch_add(1);
  Sink* sink;
  {
    absl::MutexLock lock(&mutex_);
    sink = (calls_[number] = std::make_unique<Sink>()).get();
  }
  rpc::CallOptions options;
  options.method = method_;
  options.deadline = absl::Now() + absl::Seconds(60);
  rpc::OutgoingFrame frame;
  frame.has_message = frame.end = true;
  frame.small_message = BytesOf(number);
  if (attachment_bytes_ > 0) {
    frame.attachment =
        rpc::BufferChain(rpc::Buffer::FromHeap(attachment_bytes_));
  }
  transport_->StartCall(options, std::move(frame), sink);
  return number;
}

Receipt ReceiptClient::Finish(uint64_t number) {
  std::unique_ptr<Sink> sink;
  {
    absl::MutexLock lock(&mutex_);
    sink = std::move(calls_.extract(number).mapped());
  }
  transport_->Wait(sink->closed);
  return sink->receipt;
}

}  // namespace e2e
