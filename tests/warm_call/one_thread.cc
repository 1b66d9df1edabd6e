#include "tests/warm_call/one_thread.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/warm_call/stopped_clock.h"
#include "tests/warm_call/turn_taking_transport.h"

namespace {

// Whose keepers have not started, in the order in which they should have.
std::vector<rdma::Poller*> pollers;

}  // namespace

// The linker puts this in front of Poller::StartKeepers (BUILD.bazel).
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void __real__ZN4rdma6Poller12StartKeepersEv(rdma::Poller* poller);
void __wrap__ZN4rdma6Poller12StartKeepersEv(rdma::Poller* poller) {
  pollers.push_back(poller);
}
}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

namespace warm_call {
namespace {

// Windows have grown and pools are filled long before.
constexpr int kCallsToWarmUp = 1000;
constexpr unsigned int kStuckSeconds = 120;
// Nobody is to fall asleep.
constexpr int64_t kSpinUs = 600'000'000;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);
}

void OnAlarm(int) {
  constexpr char kWhy[] =
      "a call is stuck: one turn of the server does not answer it, or one of "
      "the client does not take the answer (tests/warm_call/one_thread.h)\n";
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, kWhy, sizeof(kWhy) - 1);
  std::_Exit(1);
}

void FillPart(Part* part) {
  part->set_name(std::string(kSmallBytes, 'n'));
  for (int i = 0; i < 3; ++i) part->add_words(std::string(kSmallBytes, 'w'));
}

void FillParts(Parts* parts) {
  for (int i = 0; i < 4; ++i) FillPart(parts->add_parts());
  FillPart(parts->mutable_first());
  for (int i = 0; i < 20; ++i) parts->add_numbers(1'000'000 * i);
}

}  // namespace

// What handlers of either kind do, and set.
struct OneThread::Handlers {
  std::function<void()> run;
  bool echo_attachment = false;
  rpc::Event handled;
};

class OneThread::BlockingService final : public Echo::Service {
 public:
  explicit BlockingService(Handlers* handlers) : handlers_(*handlers) {}

 private:
  rpc::Status Say(rpc::ServerContext* context, const Blob* request,
                  Blob* response) override {
    response->set_data(request->data());
    if (handlers_.echo_attachment) {
      context->set_attachment(context->attachment());
    }
    handlers_.run();
    handlers_.handled.Set();
    return rpc::Status();
  }
  rpc::Status SayParts(rpc::ServerContext*, const Parts* request,
                       Parts* response) override {
    response->CopyFrom(*request);
    handlers_.run();
    handlers_.handled.Set();
    return rpc::Status();
  }

  Handlers& handlers_;
};

class OneThread::CallbackService final : public Echo::CallbackService {
 public:
  explicit CallbackService(Handlers* handlers) : handlers_(*handlers) {}

 private:
  rpc::ServerUnaryReactor* Say(rpc::CallbackServerContext* context,
                               const Blob* request, Blob* response) override {
    response->set_data(request->data());
    return End(context);
  }
  rpc::ServerUnaryReactor* SayParts(rpc::CallbackServerContext* context,
                                    const Parts* request,
                                    Parts* response) override {
    response->CopyFrom(*request);
    return End(context);
  }
  rpc::ServerUnaryReactor* End(rpc::CallbackServerContext* context) {
    handlers_.run();
    rpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(rpc::Status());
    handlers_.handled.Set();
    return reactor;
  }

  Handlers& handlers_;
};

// Of a client by callbacks.
class OneThread::Reactor final : public rpc::ClientUnaryReactor {
 public:
  rpc::Event& done() { return done_; }
  const rpc::Status& status() const { return status_; }

 private:
  void OnDone(const rpc::Status& status) override {
    status_ = status;
    done_.Set();
  }

  rpc::Event done_;
  rpc::Status status_;
};

rpc::Service* OneThread::ServiceOf(const Form& form) {
  if (form.callback_server) {
    callback_service_ = std::make_unique<CallbackService>(handlers_.get());
    return callback_service_.get();
  }
  blocking_service_ = std::make_unique<BlockingService>(handlers_.get());
  return blocking_service_.get();
}

OneThread::OneThread(const Form& form, OnSwitch on_switch,
                     std::function<void()> in_handler)
    : on_switch_(std::move(on_switch)),
      form_(form),
      handlers_(std::make_unique<Handlers>()) {
  handlers_->run = std::move(in_handler);
  handlers_->echo_attachment = form.attachment_bytes != 0;
  ::signal(SIGALRM, &OnAlarm);
  ::alarm(kStuckSeconds);
  request_.set_data(std::string(static_cast<size_t>(form.message_bytes), 'p'));
  FillParts(&parts_request_);

  int port = 0;
  rpc::ServerBuilder builder;
  builder.AddListeningPort("rdma://127.0.0.1:0",
                           rpc::InsecureServerCredentials(), &port);
  builder.RegisterService(ServiceOf(form));
  builder.AddChannelArgument("verbena.device", "soft");
  builder.AddChannelArgument("verbena.spin_us", kSpinUs);
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder.BuildAndStartOrStatus();
  if (!server.ok()) Die(server.status().ToString());
  server_ = *std::move(server);
  if (pollers.size() != 1) {
    Die(absl::StrCat(pollers.size(),
                     " pollers of the server have called "
                     "rdma::Poller::StartKeepers, not 1: has it another name "
                     "now, or is it inline (tests/warm_call/BUILD.bazel)?"));
  }
  server_poller_ = pollers.front();

  RegisterTurnTakingTransport([this] { ServerTurn(); });
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", "soft");
  arguments.SetInt64("verbena.spin_us", kSpinUs);
  // Another budget than the server's is another device.
  arguments.SetInt64("verbena.memory_budget_bytes", 256 << 20);
  channel_ =
      rpc::CreateCustomChannel(absl::StrCat("turns://127.0.0.1:", port),
                               rpc::InsecureChannelCredentials(), arguments);
  stub_ = Echo::NewStub(channel_);
  AllocateAttachment();
  Connect();
  StopClock();
  for (int i = 0; i < kCallsToWarmUp; ++i) Call();
}

OneThread::~OneThread() {
  // From here on it is a server and a channel as any other.
  StartClock();
  for (rdma::Poller* const poller : pollers) {
    __real__ZN4rdma6Poller12StartKeepersEv(poller);
  }
  pollers.clear();
  stub_.reset();
  channel_.reset();
  server_.reset();
  ::alarm(0);
}

void OneThread::AllocateAttachment() {
  if (form_.attachment_bytes == 0) return;
  absl::StatusOr<rpc::Buffer> buffer =
      channel_->AllocateBuffer(static_cast<size_t>(form_.attachment_bytes));
  if (!buffer.ok()) Die(buffer.status().ToString());
  std::memset(buffer->mutable_data(), 'a', buffer->size());
  attachment_ = rpc::BufferChain(*std::move(buffer));
}

// A connection takes turns of both sides until it is up.
void OneThread::Connect() {
  server_is_driven_ = true;
  rpc::Event connected;
  std::thread driver([&] { server_poller_->Wait(connected); });
  Call();
  server_poller_->Run([&] { server_poller_->SetEvent(connected); });
  driver.join();
  handlers_->handled.Reset();
  server_is_driven_ = false;
}

void OneThread::ServerTurn() {
  if (server_is_driven_) return;
  on_switch_(true);
  server_poller_->Wait(handlers_->handled);
  handlers_->handled.Reset();
  on_switch_(false);
}

rpc::Status OneThread::CallbackCall(rpc::ClientContext& context) {
  Reactor reactor;
  if (form_.has_parts()) {
    stub_->async()->SayParts(&context, &parts_request_, &parts_response_,
                             &reactor);
  } else {
    stub_->async()->Say(&context, &request_, &response_, &reactor);
  }
  reactor.StartCall();
  channel_->call_target().transport->Wait(reactor.done());
  return reactor.status();
}

void OneThread::Call() {
  rpc::ClientContext context;
  if (form_.has_deadline) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::hours(1));
  }
  if (!attachment_.empty()) context.set_attachment(attachment_);
  const rpc::Status status =
      form_.callback_client ? CallbackCall(context)
      : form_.has_parts()
          ? stub_->SayParts(&context, parts_request_, &parts_response_)
          : stub_->Say(&context, request_, &response_);
  if (!status.ok()) Die(status.ToString());
  if (context.attachment().size() != attachment_.size()) {
    Die(absl::StrCat("an attachment of ", context.attachment().size(),
                     " bytes came back"));
  }
}

}  // namespace warm_call
