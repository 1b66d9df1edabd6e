#include "rpc/internal/free_list.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace rpc::internal {

// One thread's lists as their owner: made when the thread first gives an object
// back, destroyed with the thread.
class FreeListThreads {
 public:
  ~FreeListThreads();

  // Whether the calling thread's was destroyed: the thread is about to end.
  static bool Exited() { return exited_; }

  // The calling thread's. REQUIRES: !Exited().
  static FreeListThreads& Mine() {
    thread_local FreeListThreads threads;
    return threads;
  }

  // Makes room for `index`. Under the registry's lock, for the destructors of
  // lists look into other threads' arrays.
  void GrowTo(size_t index);

  // Who has lists, and which indices are taken. Never destroyed.
  struct Registry {
    absl::Mutex mutex;
    std::vector<FreeListThreads*> threads ABSL_GUARDED_BY(mutex);
    std::vector<bool> index_taken ABSL_GUARDED_BY(mutex);
  };
  static Registry& TheRegistry() {
    static auto* const registry = new Registry;
    return *registry;
  }

  static size_t TakeIndex();
  // Empties every thread's list of `index` into `*out` and frees the index.
  static void ReleaseIndex(size_t index, FreeListStack* out);

 private:
  FreeListThreads();

  static constinit thread_local bool exited_;

  std::vector<FreeListStack> stacks_;
};

constinit thread_local FreeList::ThreadLists FreeList::this_thread_ = {nullptr,
                                                                       0};
constinit thread_local bool FreeListThreads::exited_ = false;

FreeListThreads::FreeListThreads() {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  registry.threads.push_back(this);
}

FreeListThreads::~FreeListThreads() {
  {
    Registry& registry = TheRegistry();
    absl::MutexLock lock(&registry.mutex);
    std::erase(registry.threads, this);
  }
  // What the thread gives back from here on (destructors of other thread-local
  // objects may) goes to the shared lists.
  exited_ = true;
  FreeList::this_thread_ = {nullptr, 0};
  for (FreeListStack& stack : stacks_) stack.DeleteAll();
}

void FreeListThreads::GrowTo(size_t index) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  stacks_.resize(std::max(index + 1, 2 * stacks_.size()));
  FreeList::this_thread_ = {stacks_.data(), stacks_.size()};
}

size_t FreeListThreads::TakeIndex() {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  std::vector<bool>& taken = registry.index_taken;
  const auto free = std::find(taken.begin(), taken.end(), false);
  const auto index = static_cast<size_t>(free - taken.begin());
  if (free == taken.end()) taken.push_back(false);
  taken[index] = true;
  return index;
}

void FreeListThreads::ReleaseIndex(size_t index, FreeListStack* out) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  for (FreeListThreads* thread : registry.threads) {
    if (index >= thread->stacks_.size()) continue;
    thread->stacks_[index].MoveTo(*out, UINT32_MAX);
  }
  registry.index_taken[index] = false;
}

FreeList::FreeList() : index_(FreeListThreads::TakeIndex()) {}

FreeList::~FreeList() {
  FreeListStack spare;
  FreeListThreads::ReleaseIndex(index_, &spare);
  spare.DeleteAll();
  absl::MutexLock lock(&mutex_);
  shared_.DeleteAll();
}

FreeListNode* FreeList::TakeShared() {
  // A stale zero costs a new object, no more.
  if (shared_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  FreeListStack* const mine = ThisThreads();
  absl::MutexLock lock(&mutex_);
  if (shared_.count == 0) return nullptr;
  FreeListNode* const node = shared_.Pop();
  if (mine != nullptr) shared_.MoveTo(*mine, kPerThread / 2);
  shared_count_.store(shared_.count, std::memory_order_relaxed);
  return node;
}

void FreeList::GiveShared(FreeListNode* node) {
  FreeListStack one;
  one.Push(node);
  Share(one, 0);
}

void FreeList::GiveSurplus(FreeListNode* node) {
  if (FreeListThreads::Exited()) return GiveShared(node);
  if (ThisThreads() == nullptr) FreeListThreads::Mine().GrowTo(index_);
  FreeListStack& mine = *ThisThreads();
  mine.Push(node);
  // Half of a full list goes, so that the next ones stay.
  if (mine.count > kPerThread) Share(mine, kPerThread / 2);
}

void FreeList::Share(FreeListStack& stack, uint32_t keep) {
  FreeListStack surplus;
  {
    absl::MutexLock lock(&mutex_);
    while (stack.count > keep) {
      (shared_.count < kShared ? shared_ : surplus).Push(stack.Pop());
    }
    shared_count_.store(shared_.count, std::memory_order_relaxed);
  }
  surplus.DeleteAll();
}

}  // namespace rpc::internal
