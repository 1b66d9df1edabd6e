// The receive side's memory: buffers posted to one poller's SRQ.
//
// Separate from the memory that is sent from: what the one uses up, the other
// does not miss. The pool keeps as many receives posted as connections were
// promised (Reserve), plus a margin. A received buffer belongs to whoever holds
// it; meanwhile another one takes its place in the queue, newly made if need
// be, up to the budget. Three quarters of that are set aside for promises, so a
// handler that keeps buffers starves nobody: IsTight tells the connection to
// copy the frame out instead.
//
//   rpc::Buffer buffer = pool->Take(wc.wr_id, wc.byte_len);
//   if (pool->IsTight()) buffer = rpc::Buffer::CopyOf(buffer.view());
//   ...
//   pool->Replenish();  // before credits are granted, and in each turn
//
// Thread rule: the poller's driver, except that buffers may be released by any
// thread, also after the pool's owner has gone.
#ifndef VERBENA_RDMA_TRANSPORT_RECEIVE_POOL_H_
#define VERBENA_RDMA_TRANSPORT_RECEIVE_POOL_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rdma_transport/verbs/queues.h"
#include "rpc/buffer.h"

namespace rdma {

class ReceivePool {
 public:
  struct Options {
    uint32_t buffer_bytes = 0;
    uint64_t budget_bytes = 0;
    uint32_t srq_depth = 0;
  };

  // `keep_alive` holds `pd` and its device alive as long as a buffer lives. The
  // SRQ must outlive Close.
  static absl::StatusOr<ReceivePool*> Create(ProtectionDomain* pd,
                                             SharedReceiveQueue* srq,
                                             std::shared_ptr<void> keep_alive,
                                             const Options& options);

  // The owner is done; the pool goes when its last buffer is back.
  // REQUIRES: the SRQ is destroyed, so that nothing is posted any more.
  void Close();

  // Promises `count` more receives to a connection, and posts them.
  // RESOURCE_EXHAUSTED at the budget or the SRQ's depth; nothing changes then.
  absl::Status Reserve(uint32_t count);
  void Unreserve(uint32_t count) { SetReserved(reserved_ - count); }
  // What a connection has beyond its first promise changes from `extra` to
  // `wanted`. All that connections have beyond theirs is at most half of what
  // there is, so that there is room for new ones.
  absl::Status ChangeExtra(uint32_t extra, uint32_t wanted);

  // The buffer of a receive completion: its wr_id and byte_len.
  rpc::Buffer Take(uint64_t wr_id, uint32_t bytes) {
    Block* const block = Block::Of(wr_id);
    --posted_;
    block->MakeReady();
    ++lent_;
    return rpc::Buffer(block, block->data(), bytes);
  }
  // The driver's way to let go of a buffer of Take's, which need not be the
  // last one of its block. Other threads have to use a locked instruction,
  // which waits until all that was just sent has left the CPU.
  void PutBack(rpc::Buffer buffer) {
    if (!buffer.block()->unique()) [[unlikely]]
      return;
    --lent_;
    PushFree(static_cast<Block*>(buffer.Release())->receive());
  }
  // The same for a failed or flushed receive: the buffer is free again.
  void Discard(uint64_t wr_id) {
    --posted_;
    PushFree(Block::Of(wr_id)->receive());
  }

  // Posts what is missing. Cheap where nothing is.
  void Replenish() {
    if (posted_ < replenish_below_) ReplenishSlow();
  }

  // Whether the frame that was just taken should be copied rather than kept:
  // its buffer, and what can still be had, would not do for what is promised or
  // set aside. Counted for each frame, as a batch may bring many.
  bool IsTight() { return lent_ > most_lent_ && IsTightSlow(); }

  uint32_t buffer_bytes() const { return options_.buffer_bytes; }
  // Buffers within the budget.
  uint32_t capacity() const { return capacity_; }
  // What a connection that has `extra` and wants `wanted` is to have now: even
  // parts at most, for those that have any. One that grew when they were fewer
  // gives up what it has beyond that, out of the `unused` that its peer does
  // not hold. REQUIRES: wanted >= extra >= unused.
  uint32_t NextExtra(uint32_t extra, uint32_t wanted, uint32_t unused) const;
  uint32_t posted() const { return posted_; }
  // Ready to be posted.
  uint32_t free() const { return free_count_; }
  uint32_t reserved() const { return reserved_; }
  uint64_t registered_bytes() const { return registered_bytes_; }

 private:
  // A buffer, and the work request that posts it.
  class Block final : public rpc::BufferBlock {
   public:
    Block(ReceivePool* pool, uint32_t lkey, std::byte* data, size_t bytes)
        : BufferBlock(data, bytes, nullptr),
          receive_{.wr_id = reinterpret_cast<uint64_t>(this),
                   .next = nullptr,
                   .sg_list = &sge_,
                   .num_sge = 1},
          sge_{.addr = reinterpret_cast<uint64_t>(data),
               .length = static_cast<uint32_t>(bytes),
               .lkey = lkey},
          pool_(pool) {}

    static Block* Of(uint64_t wr_id) { return reinterpret_cast<Block*>(wr_id); }

    void MakeReady() { ResetRefs(); }
    ibv_recv_wr* receive() { return &receive_; }

   private:
    void Recycle() override { pool_->Return(this); }

    ibv_recv_wr receive_;  // `next`: of the chain that the block is in
    ibv_sge sge_;
    ReceivePool* const pool_;
  };

  // Re-posting is done in batches of this many; the margin covers for it.
  static constexpr uint32_t kBatch = 16;
  static constexpr uint32_t kMargin = 2 * kBatch;
  static constexpr uint32_t kSlabBuffers = 64;

  ReceivePool(ProtectionDomain* pd, SharedReceiveQueue* srq,
              std::shared_ptr<void> keep_alive, const Options& options);
  ~ReceivePool();

  uint32_t ExtraLimit() const {
    return std::min(capacity_, options_.srq_depth) / 2;
  }
  bool CanGrow() const {
    return registered_bytes_ + SlabBytes() <= options_.budget_bytes;
  }
  static uint32_t CapacityOf(const Options& options);
  uint64_t SlabBytes() const {
    return uint64_t{kSlabBuffers} * options_.buffer_bytes;
  }
  void SetReserved(uint32_t count) {
    reserved_ = count;
    UpdateLimits();
  }
  // After each change of what they depend on.
  void UpdateLimits();
  bool IsTightSlow();
  void ReplenishSlow();
  absl::Status PostUpTo(uint32_t target);
  absl::Status AddSlab();
  // Takes what was given back, and leaves `rest` in its place.
  void CollectReturned(ibv_recv_wr* rest = nullptr);
  void PushFree(ibv_recv_wr* receive) {
    receive->next = free_;
    free_ = receive;
    ++free_count_;
  }
  void Return(Block* block);
  void AddHolders(int64_t count);

  ProtectionDomain* const pd_;
  SharedReceiveQueue* const srq_;
  const std::shared_ptr<void> keep_alive_;
  const Options options_;

  std::vector<std::unique_ptr<MemoryRegion>> regions_;
  std::vector<std::unique_ptr<Block>> blocks_;
  // Blocks are chained by their work requests, ready to be posted.
  ibv_recv_wr* free_ = nullptr;
  uint32_t free_count_ = 0;
  uint32_t posted_ = 0;
  uint32_t reserved_ = 0;
  uint32_t extra_ = 0;       // of that, beyond first promises
  uint32_t with_extra_ = 0;  // connections that have any
  uint64_t registered_bytes_ = 0;
  const uint32_t capacity_;
  const uint32_t set_aside_;
  // Buffers that there are and can still be made: the capacity, or no more than
  // there are where registering failed.
  uint32_t attainable_;

  // What each frame is measured by (UpdateLimits). With a batch's slack, so
  // that posting comes in batches:
  uint32_t replenish_below_ = 0;
  // When more are lent, those that are left and can still be made do not do for
  // what is promised or set aside. Negative: they never do.
  int64_t most_lent_ = 0;
  // In somebody's hands, or given back and not collected yet.
  int64_t lent_ = 0;
  // Buffers given back by any thread, newest first; the mark once the pool is
  // closed, when nobody collects any more.
  std::atomic<ibv_recv_wr*> returned_{nullptr};
  ibv_recv_wr closed_mark_ = {};
  // From then on, buffers in somebody's hands: the last one ends the pool.
  std::atomic<int64_t> holders_{0};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_RECEIVE_POOL_H_
