#include "benchmarks/scale_client.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <sstream>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "benchmarks/rpc_bench.rpc.pb.h"

namespace benchmarks {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

// What the parent says.
constexpr char kOpen[] = "open";
constexpr char kSleep[] = "sleep";
constexpr char kStop[] = "stop";

absl::Status CallOnce(const std::shared_ptr<rpc::Channel>& channel) {
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + kConnectTimeout);
  context.set_wait_for_ready(true);
  Payload answer;
  return Bench::NewStub(channel)
      ->Echo(&context, Payload(), &answer)
      .ToAbslStatus();
}

// Keeps calls of Sleep in flight from its construction until Stop.
class Sleepers {
 public:
  Sleepers(std::shared_ptr<rpc::Channel> channel, const SleepingCalls& calls)
      : stub_(Bench::NewStub(std::move(channel))),
        options_(calls),
        running_(calls.calls) {
    for (int i = 0; i < calls.calls; ++i) {
      slots_.push_back(std::make_unique<Slot>(this));
    }
    for (const std::unique_ptr<Slot>& slot : slots_) slot->Start();
  }

  absl::Status Stop() {
    stopping_.store(true, std::memory_order_relaxed);
    running_.Wait();
    absl::MutexLock lock(&mutex_);
    return first_error_;
  }

 private:
  // One of the calls in flight; when it is over it becomes the next one.
  class Slot final : public rpc::ClientUnaryReactor {
   public:
    explicit Slot(Sleepers* sleepers) : sleepers_(*sleepers) {}

    void Start() {
      context_.emplace();
      request_.set_microseconds(sleepers_.NextSleepUs());
      sleepers_.stub_->async()->Sleep(&*context_, &request_, &response_, this);
      StartCall();
    }

    void OnDone(const rpc::Status& status) override {
      if (sleepers_.GoesOn(status.ToAbslStatus())) {
        Start();
      } else {
        sleepers_.running_.DecrementCount();
      }
    }

   private:
    Sleepers& sleepers_;
    std::optional<rpc::ClientContext> context_;
    Nap request_;
    Receipt response_;
  };

  uint32_t NextSleepUs() {
    const auto every = static_cast<uint64_t>(options_.every);
    if (calls_.fetch_add(1, std::memory_order_relaxed) % every != 0) return 0;
    return static_cast<uint32_t>(absl::ToInt64Microseconds(options_.sleep));
  }

  bool GoesOn(const absl::Status& status) {
    if (status.ok()) return !stopping_.load(std::memory_order_relaxed);
    absl::MutexLock lock(&mutex_);
    first_error_.Update(status);
    return false;
  }

  const std::unique_ptr<Bench::Stub> stub_;
  const SleepingCalls options_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> stopping_{false};
  absl::BlockingCounter running_;
  absl::Mutex mutex_;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Slot>> slots_;
};

// The child: one command after the other.
class Obedience {
 public:
  Obedience(const std::string& address, const EndpointSettings& settings)
      : address_(address), arguments_(ChannelArgumentsOf(settings)) {}

  absl::StatusOr<std::string> Obey(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    absl::Status status = absl::InvalidArgumentError(line);
    if (command == kOpen) {
      int connections = 0;
      words >> connections;
      status = Open(connections);
    } else if (command == kSleep) {
      SleepingCalls calls;
      int64_t sleep_us = 0;
      words >> calls.calls >> sleep_us >> calls.every;
      calls.sleep = absl::Microseconds(sleep_us);
      status = Sleep(calls);
    } else if (command == kStop && sleepers_ != nullptr) {
      status = sleepers_->Stop();
      sleepers_ = nullptr;
    }
    if (!status.ok()) return status;
    return std::string();
  }

 private:
  absl::Status Open(int connections) {
    for (int i = 0; i < connections; ++i) {
      auto channel = OpenConnection(address_, arguments_);
      if (!channel.ok()) return channel.status();
      channels_.push_back(*std::move(channel));
    }
    return absl::OkStatus();
  }

  absl::Status Sleep(const SleepingCalls& calls) {
    if (channels_.empty()) {
      if (absl::Status status = Open(1); !status.ok()) return status;
    }
    sleepers_ = std::make_unique<Sleepers>(channels_.front(), calls);
    return absl::OkStatus();
  }

  const std::string address_;
  const rpc::ChannelArguments arguments_;
  std::vector<std::shared_ptr<rpc::Channel>> channels_;
  std::unique_ptr<Sleepers> sleepers_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<rpc::Channel>> OpenConnection(
    const std::string& address, rpc::ChannelArguments arguments) {
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  std::shared_ptr<rpc::Channel> channel = rpc::CreateCustomChannel(
      address, rpc::InsecureChannelCredentials(), arguments);
  // A call says what went wrong, and is answered by a connection that works.
  if (absl::Status status = CallOnce(channel); !status.ok()) return status;
  return channel;
}

absl::StatusOr<OtherClient> OtherClient::Start(
    const std::string& address, const std::vector<std::string>& flags,
    std::optional<int> cpu) {
  std::vector<std::string> words = flags;
  words.push_back(absl::StrCat("--address=", address));
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(words, cpu);
  if (!child.ok()) return child.status();
  return OtherClient(*std::move(child));
}

absl::Status OtherClient::Open(int connections) {
  return child_.Ask(absl::StrCat(kOpen, " ", connections)).status();
}

absl::Status OtherClient::KeepAsleep(const SleepingCalls& calls) {
  return child_
      .Ask(absl::StrCat(kSleep, " ", calls.calls, " ",
                        absl::ToInt64Microseconds(calls.sleep), " ",
                        calls.every))
      .status();
}

absl::Status OtherClient::Stop() { return child_.Ask(kStop).status(); }

int ServeScaleParent(int control_fd, const std::string& address,
                     const EndpointSettings& settings) {
  ParentProcess parent(control_fd);
  Obedience obedience(address, settings);
  parent.Answer(std::string("ready"));
  while (const std::optional<std::string> line = parent.ReadLine()) {
    parent.Answer(obedience.Obey(*line));
  }
  return 0;
}

}  // namespace benchmarks
