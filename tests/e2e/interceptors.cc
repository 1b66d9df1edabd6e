#include "tests/e2e/interceptors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "tests/e2e/device_under_test.h"

namespace e2e {
namespace {

constexpr const char* kNames[] = {"pre_send_initial_metadata",
                                  "pre_send_message",
                                  "post_send_message",
                                  "pre_send_status",
                                  "pre_send_close",
                                  "pre_recv_initial_metadata",
                                  "pre_recv_message",
                                  "pre_recv_status",
                                  "post_recv_initial_metadata",
                                  "post_recv_message",
                                  "post_recv_status",
                                  "post_recv_close",
                                  "pre_send_cancel"};
constexpr int kCount = static_cast<int>(Hook::NUM_INTERCEPTION_HOOKS);
static_assert(std::size(kNames) == kCount);

bool IsSent(const std::string& name) {
  return absl::StrContains(name, "_send_");
}

class ActingInterceptor final : public rpc::experimental::Interceptor {
 public:
  explicit ActingInterceptor(Act act) : act_(std::move(act)) {}
  void Intercept(Batch* batch) override { act_(batch); }

 private:
  const Act act_;
};

}  // namespace

std::string NameOf(Hook hook) { return kNames[static_cast<int>(hook)]; }

void HookLog::Note(Batch* batch) {
  absl::MutexLock lock(&mutex_);
  for (int i = 0; i < kCount; ++i) {
    if (batch->QueryInterceptionHookPoint(static_cast<Hook>(i))) {
      names_.push_back(kNames[i]);
    }
  }
}

std::vector<std::string> HookLog::All() const {
  absl::MutexLock lock(&mutex_);
  return names_;
}

std::vector<std::string> HookLog::Sent() const {
  std::vector<std::string> names = All();
  std::erase_if(names, [](const std::string& name) { return !IsSent(name); });
  return names;
}

std::vector<std::string> HookLog::Received() const {
  std::vector<std::string> names = All();
  std::erase_if(names, IsSent);
  return names;
}

int HookLog::CountOf(Hook hook) const {
  const std::vector<std::string> names = All();
  return static_cast<int>(std::count(names.begin(), names.end(), NameOf(hook)));
}

void HookLog::Clear() {
  absl::MutexLock lock(&mutex_);
  names_.clear();
}

Act Noting(HookLog* log) {
  return [log](Batch* batch) {
    log->Note(batch);
    batch->Proceed();
  };
}

OtherThread::~OtherThread() {
  while (true) {
    std::vector<std::thread> threads;
    {
      absl::MutexLock lock(&mutex_);
      threads.swap(threads_);
    }
    if (threads.empty()) return;
    for (std::thread& thread : threads) thread.join();
  }
}

Act OtherThread::Doing(Act act) {
  return [this, act = std::move(act)](Batch* batch) {
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_CANCEL)) {
      return act(batch);
    }
    absl::MutexLock lock(&mutex_);
    threads_.emplace_back([act, batch] { act(batch); });
  };
}

rpc::experimental::Interceptor* ActingFactory::CreateClientInterceptor(
    rpc::experimental::ClientRpcInfo* /*info*/) {
  return act_ == nullptr ? nullptr : new ActingInterceptor(act_);
}

rpc::experimental::Interceptor* ActingFactory::CreateServerInterceptor(
    rpc::experimental::ServerRpcInfo* /*info*/) {
  return CreateClientInterceptor(nullptr);
}

std::vector<
    std::unique_ptr<rpc::experimental::ServerInterceptorFactoryInterface>>
ServerFactories(const std::vector<Act>& acts) {
  std::vector<
      std::unique_ptr<rpc::experimental::ServerInterceptorFactoryInterface>>
      factories;
  for (const Act& act : acts) {
    factories.push_back(std::make_unique<ActingFactory>(act));
  }
  return factories;
}

std::shared_ptr<rpc::Channel> InterceptedChannel(const std::string& address,
                                                 const std::vector<Act>& acts) {
  std::vector<
      std::unique_ptr<rpc::experimental::ClientInterceptorFactoryInterface>>
      factories;
  for (const Act& act : acts) {
    factories.push_back(std::make_unique<ActingFactory>(act));
  }
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", TheDeviceUnderTest().client_device);
  return rpc::experimental::CreateCustomChannelWithInterceptors(
      address, rpc::InsecureChannelCredentials(), arguments,
      std::move(factories));
}

}  // namespace e2e
