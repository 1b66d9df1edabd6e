#include "rdma_transport/provider/fault_plan.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rdma {

void FaultPlan::FailCall(int index, int error) {
  absl::MutexLock lock(&mutex_);
  failing_index_ = index;
  failing_name_.clear();
  error_ = error;
  failed_call_.clear();
}

void FaultPlan::FailFirst(std::string_view call, int error) {
  absl::MutexLock lock(&mutex_);
  failing_index_ = -1;
  failing_name_ = std::string(call);
  error_ = error;
  failed_call_.clear();
}

int FaultPlan::OnCall(std::string_view call) {
  absl::MutexLock lock(&mutex_);
  const bool by_name = !failing_name_.empty() && call == failing_name_;
  if (calls_++ != failing_index_ && !by_name) return 0;
  failing_name_.clear();
  failed_call_ = std::string(call);
  return error_;
}

void FaultPlan::OnCreated(std::string_view kind) {
  absl::MutexLock lock(&mutex_);
  ++alive_[std::string(kind)];
}

void FaultPlan::OnDestroyed(std::string_view kind) {
  absl::MutexLock lock(&mutex_);
  --alive_[std::string(kind)];
}

int FaultPlan::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

bool FaultPlan::failed() const { return !failed_call().empty(); }

std::string FaultPlan::failed_call() const {
  absl::MutexLock lock(&mutex_);
  return failed_call_;
}

std::string FaultPlan::Leaks() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> leaks;
  for (const auto& [kind, count] : alive_) {
    if (count != 0) leaks.push_back(absl::StrCat(count, " ", kind));
  }
  return absl::StrJoin(leaks, ", ");
}

}  // namespace rdma
