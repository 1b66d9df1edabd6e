// Spare objects of one kind, kept for the next who needs one: state of calls.
//
// Each thread has a short list of its own, so that taking and giving back an
// object is a few plain instructions: no lock, no atomic operation. Lists that
// run over or dry exchange objects in batches with a shared list.
//
//   auto* call = static_cast<Call*>(free_list.Take());
//   if (call == nullptr) call = new Call;
//   ...
//   free_list.Give(call);
//
// Thread rule: Take, Give and GiveShared from any thread. The destructor
// deletes every spare object, those of other threads' lists too. REQUIRES: what
// threads did with the list happened before its destructor.
#ifndef VERBENA_RPC_INTERNAL_FREE_LIST_H_
#define VERBENA_RPC_INTERNAL_FREE_LIST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rpc::internal {

// Base of what a free list keeps.
class FreeListNode {
 public:
  FreeListNode() = default;
  FreeListNode(const FreeListNode&) = delete;
  FreeListNode& operator=(const FreeListNode&) = delete;
  virtual ~FreeListNode() = default;

 private:
  friend class FreeList;
  friend struct FreeListStack;
  FreeListNode* next_free_ = nullptr;
};

// A stack of nodes that it does not own; no synchronization.
struct FreeListStack {
  FreeListNode* top = nullptr;
  uint32_t count = 0;

  void Push(FreeListNode* node) {
    node->next_free_ = top;
    top = node;
    ++count;
  }
  // REQUIRES: not empty.
  FreeListNode* Pop() {
    FreeListNode* const node = top;
    top = node->next_free_;
    --count;
    return node;
  }
  void MoveTo(FreeListStack& other, uint32_t limit) {
    while (count > 0 && other.count < limit) other.Push(Pop());
  }
  void DeleteAll() {
    while (count > 0) delete Pop();
  }
};

class FreeList {
 public:
  // A thread keeps at most this many for itself.
  static constexpr uint32_t kPerThread = 32;
  // The shared list keeps at most this many; what is over is deleted.
  static constexpr uint32_t kShared = 256;

  FreeList();
  ~FreeList();
  FreeList(const FreeList&) = delete;
  FreeList& operator=(const FreeList&) = delete;

  // A spare object, or null.
  FreeListNode* Take() {
    if (index_ < this_thread_.size) {
      FreeListStack& mine = this_thread_.stacks[index_];
      if (mine.count > 0) [[likely]]
        return mine.Pop();
    }
    return TakeShared();
  }

  // Keeps (or deletes) `node`.
  void Give(FreeListNode* node) {
    if (index_ < this_thread_.size) {
      FreeListStack& mine = this_thread_.stacks[index_];
      if (mine.count < kPerThread) [[likely]]
        return mine.Push(node);
    }
    GiveSurplus(node);
  }

  // The same for a thread that will not take any: the object goes to those that
  // do. Takes a lock.
  void GiveShared(FreeListNode* node);

 private:
  friend class FreeListThreads;

  // One thread's lists, by FreeList::index_.
  struct ThreadLists {
    FreeListStack* stacks;
    size_t size;
  };
  static constinit thread_local ThreadLists this_thread_;

  FreeListStack* ThisThreads() {
    return index_ < this_thread_.size ? &this_thread_.stacks[index_] : nullptr;
  }

  FreeListNode* TakeShared();
  // For a thread whose list is full, or not there.
  void GiveSurplus(FreeListNode* node);
  // Moves what is over `keep` to the shared list, and deletes what does not fit
  // there.
  void Share(FreeListStack& stack, uint32_t keep);

  const size_t index_;  // no other living list has it
  std::atomic<uint32_t> shared_count_{0};
  absl::Mutex mutex_;
  FreeListStack shared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_FREE_LIST_H_
