#include "rdma_transport/joint_memory.h"

#include <atomic>
#include <utility>

#include "absl/status/statusor.h"

namespace rdma {
namespace {

uint64_t NextOwner() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

JointMemory::JointMemory(RegisteredMemory* memory)
    : memory_(memory), owner_(NextOwner()) {}

JointMemory::~JointMemory() {
  if (is_worth_it_) memory_->ReleaseJoint(owner_);
}

std::optional<rpc::Buffer> JointMemory::Allocate(size_t bytes) {
  if (++allocations_ >= kFewestAllocations) is_worth_it_ = true;
  if (!is_worth_it_) return std::nullopt;
  absl::StatusOr<rpc::Buffer> buffer = memory_->AllocateJoint(owner_, bytes);
  if (!buffer.ok()) return std::nullopt;
  return *std::move(buffer);
}

bool JointMemory::StaysInUse() {
  if (std::exchange(allocations_, 0) != 0) return true;
  if (std::exchange(is_worth_it_, false)) memory_->ReleaseJoint(owner_);
  return false;
}

}  // namespace rdma
