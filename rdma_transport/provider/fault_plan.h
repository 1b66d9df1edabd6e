// Which control call fails, with which errno, and what is alive meanwhile: the
// bookkeeping of FailingProvider.
//
//   for (int n = 0; ; ++n) {
//     FaultPlan plan;
//     plan.FailCall(n, ENOMEM);
//     Run(MakeFailingProvider(MakeSoftwareProvider(), &plan));
//     EXPECT_EQ(plan.Leaks(), "");
//     if (!plan.failed()) break;  // n calls are all that there are
//   }
//
// Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_PROVIDER_FAULT_PLAN_H_
#define VERBENA_RDMA_TRANSPORT_PROVIDER_FAULT_PLAN_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rdma {

class FaultPlan {
 public:
  FaultPlan() = default;
  FaultPlan(const FaultPlan&) = delete;
  FaultPlan& operator=(const FaultPlan&) = delete;

  // The call number `index`, counted from 0 over all objects, fails with
  // `error`; so does none before or after it. Forgets what was planned before.
  void FailCall(int index, int error);
  // The same for the first call named `call` from now on: where threads call,
  // numbers change hands from run to run.
  void FailFirst(std::string_view call, int error);

  // Counts a call named `call`. 0: it is to be made; else the errno that it is
  // to fail with, without being made.
  int OnCall(std::string_view call);

  // An object of a kind ("QP") came to be, or went.
  void OnCreated(std::string_view kind);
  void OnDestroyed(std::string_view kind);

  // Calls so far, and whether one failed by this plan: which.
  int calls() const;
  bool failed() const;
  std::string failed_call() const;

  // What is alive, "2 QP, 1 MR", or below zero: destroyed too often. Empty when
  // everything that was created is destroyed.
  std::string Leaks() const;

 private:
  mutable absl::Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int failing_index_ ABSL_GUARDED_BY(mutex_) = -1;
  std::string failing_name_ ABSL_GUARDED_BY(mutex_);
  int error_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string failed_call_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> alive_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_PROVIDER_FAULT_PLAN_H_
