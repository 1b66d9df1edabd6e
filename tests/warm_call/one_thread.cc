#include "tests/warm_call/one_thread.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

}  // namespace

class OneThread::Service final : public Echo::Service {
 public:
  explicit Service(std::function<void()> in_handler)
      : in_handler_(std::move(in_handler)) {}

  // Set by each handler.
  rpc::Event& handled() { return handled_; }

 private:
  rpc::Status Say(rpc::ServerContext*, const Blob* request,
                  Blob* response) override {
    response->set_data(request->data());
    in_handler_();
    handled_.Set();
    return rpc::Status();
  }

  const std::function<void()> in_handler_;
  rpc::Event handled_;
};

OneThread::OneThread(size_t message_bytes, OnSwitch on_switch,
                     std::function<void()> in_handler)
    : on_switch_(std::move(on_switch)),
      service_(std::make_unique<Service>(std::move(in_handler))) {
  ::signal(SIGALRM, &OnAlarm);
  ::alarm(kStuckSeconds);
  request_.set_data(std::string(message_bytes, 'p'));

  int port = 0;
  rpc::ServerBuilder builder;
  builder.AddListeningPort("rdma://127.0.0.1:0",
                           rpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service_.get());
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
  stub_ = Echo::NewStub(
      rpc::CreateCustomChannel(absl::StrCat("turns://127.0.0.1:", port),
                               rpc::InsecureChannelCredentials(), arguments));
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
  server_.reset();
  ::alarm(0);
}

// A connection takes turns of both sides until it is up.
void OneThread::Connect() {
  server_is_driven_ = true;
  rpc::Event connected;
  std::thread driver([&] { server_poller_->Wait(connected); });
  Call();
  server_poller_->Run([&] { server_poller_->SetEvent(connected); });
  driver.join();
  service_->handled().Reset();
  server_is_driven_ = false;
}

void OneThread::ServerTurn() {
  if (server_is_driven_) return;
  on_switch_(true);
  server_poller_->Wait(service_->handled());
  service_->handled().Reset();
  on_switch_(false);
}

void OneThread::Call() {
  rpc::ClientContext context;
  const rpc::Status status = stub_->Say(&context, request_, &response_);
  if (!status.ok()) Die(status.ToString());
}

}  // namespace warm_call
