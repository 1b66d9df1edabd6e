#include "rdma_transport/receive_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rpc/logging.h"

namespace rdma {

absl::StatusOr<ReceivePool*> ReceivePool::Create(
    ProtectionDomain* pd, SharedReceiveQueue* srq,
    std::shared_ptr<void> keep_alive, const Options& options) {
  auto* const pool = new ReceivePool(pd, srq, std::move(keep_alive), options);
  if (absl::Status status = pool->Reserve(0); !status.ok()) {
    delete pool;
    return status;
  }
  return pool;
}

ReceivePool::ReceivePool(ProtectionDomain* pd, SharedReceiveQueue* srq,
                         std::shared_ptr<void> keep_alive,
                         const Options& options)
    : pd_(pd),
      srq_(srq),
      keep_alive_(std::move(keep_alive)),
      options_(options),
      capacity_(CapacityOf(options)),
      set_aside_(std::min(options.srq_depth, capacity_ / 4 * 3)),
      attainable_(capacity_) {
  UpdateLimits();
}

uint32_t ReceivePool::CapacityOf(const Options& options) {
  const uint64_t slabs =
      options.budget_bytes / (uint64_t{kSlabBuffers} * options.buffer_bytes);
  return static_cast<uint32_t>(
             std::min<uint64_t>(slabs, UINT32_MAX / 2 / kSlabBuffers)) *
         kSlabBuffers;
}

ReceivePool::~ReceivePool() = default;

// From here on whoever gives a buffer back counts. Those that do so before the
// rest is known make the number negative, so that it is 0 just once.
void ReceivePool::Close() {
  CollectReturned(&closed_mark_);
  AddHolders(lent_);
}

void ReceivePool::AddHolders(int64_t count) {
  if (holders_.fetch_add(count, std::memory_order_acq_rel) != -count) return;
  // The regions go before the PD that keep_alive_ holds: members are destroyed
  // in reverse order, and regions_ comes after it.
  delete this;
}

absl::Status ReceivePool::Reserve(uint32_t count) {
  const uint32_t wanted = reserved_ + count + kMargin;
  if (wanted > options_.srq_depth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the shared receive queue's ", options_.srq_depth,
                     " entries are all promised to connections"));
  }
  if (absl::Status status = PostUpTo(wanted); !status.ok()) return status;
  SetReserved(reserved_ + count);
  return absl::OkStatus();
}

absl::Status ReceivePool::ChangeExtra(uint32_t extra, uint32_t wanted) {
  if (wanted > extra) {
    if (extra_ - extra + wanted > ExtraLimit()) {
      return absl::ResourceExhaustedError(
          "the other receives are kept for new connections");
    }
    if (absl::Status status = Reserve(wanted - extra); !status.ok()) {
      return status;
    }
  } else {
    Unreserve(extra - wanted);
  }
  extra_ = extra_ - extra + wanted;
  with_extra_ +=
      static_cast<uint32_t>(wanted > 0) - static_cast<uint32_t>(extra > 0);
  return absl::OkStatus();
}

uint32_t ReceivePool::NextExtra(uint32_t extra, uint32_t wanted,
                                uint32_t unused) const {
  const uint32_t share = ExtraLimit() / (with_extra_ + (extra == 0 ? 1 : 0));
  if (extra > share) return std::max(share, extra - unused);
  const uint32_t left = ExtraLimit() - extra_;
  return std::min({wanted, share, extra + left});
}

void ReceivePool::UpdateLimits() {
  replenish_below_ = reserved_ + kMargin - kBatch;
  const uint32_t needed = std::max(reserved_ + kMargin, set_aside_);
  most_lent_ = int64_t{attainable_} - int64_t{needed};
}

bool ReceivePool::IsTightSlow() {
  CollectReturned();
  return lent_ > most_lent_;
}

void ReceivePool::ReplenishSlow() {
  const absl::Status status = PostUpTo(reserved_ + kMargin);
  if (!status.ok()) {
    // Frames are copied meanwhile (IsTight); buffers will come back.
    static auto* const limiter = new rpc::LogLimiter(absl::Seconds(10));
    if (limiter->Allow()) {
      rpc::Log(rpc::LogLevel::kWarning,
               absl::StrCat("receive buffers run short: ", status.ToString()));
    }
  }
}

absl::Status ReceivePool::PostUpTo(uint32_t target) {
  CollectReturned();
  while (posted_ < target) {
    if (free_ == nullptr) {
      if (absl::Status status = AddSlab(); !status.ok()) return status;
    }
    const uint32_t batch = std::min({kBatch, target - posted_, free_count_});
    ibv_recv_wr* last = free_;
    for (uint32_t i = 1; i < batch; ++i) last = last->next;
    ibv_recv_wr* const first = std::exchange(free_, last->next);
    last->next = nullptr;
    free_count_ -= batch;
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_srq_recv(srq_->get(), first, &bad);
    uint32_t done = batch;
    if (error != 0) {
      // From the bad one on they are still free; all, where none is named.
      if (bad == nullptr) bad = first;
      last->next = std::exchange(free_, bad);
      for (; bad != nullptr && bad != last->next; bad = bad->next) {
        --done;
        ++free_count_;
      }
    }
    posted_ += done;
    if (error != 0) return VerbsError("ibv_post_srq_recv", error);
  }
  return absl::OkStatus();
}

absl::Status ReceivePool::AddSlab() {
  if (!CanGrow()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(registered_bytes_, " of ", options_.budget_bytes,
                     " bytes of receive buffers are in use: raise "
                     "verbena.receive_budget_bytes"));
  }
  absl::StatusOr<std::unique_ptr<MemoryRegion>> region =
      MemoryRegion::Create(pd_, SlabBytes(), IBV_ACCESS_LOCAL_WRITE);
  if (!region.ok()) {
    // What cannot be had is not counted on.
    attainable_ = static_cast<uint32_t>(blocks_.size());
    UpdateLimits();
    return region.status();
  }
  for (uint32_t i = 0; i < kSlabBuffers; ++i) {
    blocks_.push_back(std::make_unique<Block>(
        this, (*region)->lkey(),
        (*region)->data() + size_t{i} * options_.buffer_bytes,
        options_.buffer_bytes));
    PushFree(blocks_.back()->receive());
  }
  regions_.push_back(*std::move(region));
  registered_bytes_ += SlabBytes();
  attainable_ = capacity_;
  UpdateLimits();
  return absl::OkStatus();
}

void ReceivePool::CollectReturned(ibv_recv_wr* rest) {
  if (returned_.load(std::memory_order_relaxed) == rest) return;
  ibv_recv_wr* const first =
      returned_.exchange(rest, std::memory_order_acquire);
  if (first == nullptr) return;
  ibv_recv_wr* last = first;
  uint32_t count = 1;
  for (; last->next != nullptr; last = last->next) ++count;
  last->next = std::exchange(free_, first);
  free_count_ += count;
  lent_ -= count;
}

void ReceivePool::Return(Block* block) {
  ibv_recv_wr* const receive = block->receive();
  ibv_recv_wr* head = returned_.load(std::memory_order_relaxed);
  do {
    if (head == &closed_mark_) return AddHolders(-1);
    receive->next = head;
  } while (!returned_.compare_exchange_weak(
      head, receive, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace rdma
