// Interceptors for tests, of either side: they do as a function says, and note
// what they saw.
//
//   HookLog log;
//   auto channel = InterceptedChannel(address, {&log});
//   ...
//   EXPECT_THAT(log.Sent(), ElementsAre("pre_send_initial_metadata", ...));
//
// Thread rule: any thread.
#ifndef VERBENA_TESTS_E2E_INTERCEPTORS_H_
#define VERBENA_TESTS_E2E_INTERCEPTORS_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/rpc.h"

namespace e2e {

using Hook = rpc::experimental::InterceptionHookPoints;
using Batch = rpc::experimental::InterceptorBatchMethods;

// What an interceptor does; ends in Proceed or Hijack. A call's interceptors
// share it.
using Act = std::function<void(Batch*)>;

// "pre_send_message".
std::string NameOf(Hook hook);

// The hook points that were shown, in their order.
class HookLog {
 public:
  void Note(Batch* batch);

  std::vector<std::string> All() const;
  // Those that begin with "pre_send" or "post_send", and the others.
  std::vector<std::string> Sent() const;
  std::vector<std::string> Received() const;
  int CountOf(Hook hook) const;
  void Clear();

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

// Notes, and proceeds.
Act Noting(HookLog* log);
// Has another thread do `act`, so that Intercept returns before.
class OtherThread {
 public:
  // Everything that was given to it is done.
  ~OtherThread();
  Act Doing(Act act);

 private:
  absl::Mutex mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

// Makes interceptors of both sides.
class ActingFactory final
    : public rpc::experimental::ClientInterceptorFactoryInterface,
      public rpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit ActingFactory(Act act) : act_(std::move(act)) {}

  rpc::experimental::Interceptor* CreateClientInterceptor(
      rpc::experimental::ClientRpcInfo* info) override;
  rpc::experimental::Interceptor* CreateServerInterceptor(
      rpc::experimental::ServerRpcInfo* info) override;

 private:
  const Act act_;
};

// A channel of the device under test, with an interceptor for each function;
// none is a factory that makes none.
std::shared_ptr<rpc::Channel> InterceptedChannel(const std::string& address,
                                                 const std::vector<Act>& acts);

// The same for a server's builder.
std::vector<
    std::unique_ptr<rpc::experimental::ServerInterceptorFactoryInterface>>
ServerFactories(const std::vector<Act>& acts);

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_INTERCEPTORS_H_
