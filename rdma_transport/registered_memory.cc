#include "rdma_transport/registered_memory.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "memory/round_up.h"
#include "rdma_transport/device_use.h"

namespace rdma {
namespace {

constexpr size_t kFirstArenaBytes = size_t{4} << 20;
constexpr size_t kLargestArenaBytes = size_t{256} << 20;
constexpr size_t kSmallestSlabBytes = size_t{256} << 10;

// A larger buffer would be out of the cache before it is written to.
constexpr size_t kMostTakenBack = size_t{16} << 10;

}  // namespace

// One buffer's memory: a slot of a slab, or (slab null) a run of its own.
class RegisteredMemory::Block final : public rpc::BufferBlock {
 public:
  Block(RegisteredMemory* memory, ibv_mr* mr, std::byte* data, size_t capacity)
      : BufferBlock(data, capacity, memory), memory(memory), mr(mr) {}

  void MakeReady() { ResetRefs(); }

  RegisteredMemory* const memory;
  ibv_mr* const mr;
  Slab* slab = nullptr;
  Block* next_free = nullptr;
  Run run;  // where slab is null

 private:
  void Recycle() override { memory->Return(this); }
};

// A run cut into blocks of one class. Slabs with a free block are on their
// class's list.
struct RegisteredMemory::Slab {
  Run run;
  int class_index = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  Block* free = nullptr;
  size_t in_use = 0;
  Slab* next = nullptr;
  Slab* previous = nullptr;

  void Link(SizeClass& size_class) {
    previous = nullptr;
    next = size_class.partial;
    if (next != nullptr) next->previous = this;
    size_class.partial = this;
  }
  void Unlink(SizeClass& size_class) {
    (previous == nullptr ? size_class.partial : previous->next) = next;
    if (next != nullptr) next->previous = previous;
  }
};

RegisteredMemory::Block* const RegisteredMemory::kClosed =
    reinterpret_cast<Block*>(1);

namespace {

// With memory windows peers get at what is offered to them and nothing else:
// binding one takes MW_BIND (ibv_bind_mw(3)), and no REMOTE_READ on the region.
int AccessFor(Device* device) {
  return IBV_ACCESS_LOCAL_WRITE |
         (GrantsByWindows(device->attributes()) ? IBV_ACCESS_MW_BIND
                                                : IBV_ACCESS_REMOTE_READ);
}

}  // namespace

RegisteredMemory::RegisteredMemory(ProtectionDomain* pd, uint64_t budget_bytes)
    : pd_(pd),
      access_(AccessFor(pd->device())),
      cpus_read_(pd->device()->cpus_read()),
      budget_bytes_(budget_bytes),
      next_arena_bytes_(kFirstArenaBytes) {}

RegisteredMemory::~RegisteredMemory() {
  std::thread worker;
  {
    absl::MutexLock lock(&mutex_);
    joint_.stops = true;
    joint_wake_.Signal();
    worker.swap(joint_.thread);
  }
  if (worker.joinable()) worker.join();
  absl::MutexLock lock(&mutex_);
  GiveUpSpares(nullptr);
  for (SizeClass& size_class : classes_) {
    // With no live block, every slab is on its class's list.
    while (Slab* slab = size_class.partial) {
      slab->Unlink(size_class);
      delete slab;
    }
  }
}

bool RegisteredMemory::HasRoomInFront(const rpc::Buffer& buffer,
                                      size_t bytes) const {
  return Owns(buffer) && buffer.headroom() >= bytes &&
         static_cast<Block*>(buffer.block())->slab != nullptr &&
         buffer.block()->unique();
}

ibv_mr* RegisteredMemory::MrOf(const rpc::Buffer& buffer) {
  return static_cast<Block*>(buffer.block())->mr;
}

int RegisteredMemory::ClassOf(size_t bytes) {
  if (bytes <= kSmallestClassBytes) return 0;
  return std::countr_zero(std::bit_ceil(bytes)) -
         std::countr_zero(kSmallestClassBytes);
}

absl::StatusOr<rpc::Buffer> RegisteredMemory::Allocate(size_t bytes) {
  if (bytes == 0) return rpc::Buffer();
  if (bytes > budget_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        bytes, " bytes of registered memory are wanted, the memory budget is ",
        budget_bytes_, ": raise verbena.memory_budget_bytes"));
  }
  const bool classed = bytes <= kLargestClassBytes;
  Block* block = classed ? TakeSpare(ClassOf(bytes)) : nullptr;
  if (block == nullptr) {
    absl::MutexLock lock(&mutex_);
    absl::StatusOr<Block*> taken =
        classed ? TakeFromClass(ClassOf(bytes)) : TakeRunBlock(bytes);
    if (!taken.ok()) return taken.status();
    ++live_blocks_;
    block = *taken;
  }
  block->MakeReady();
  return rpc::Buffer(block, block->data() + (classed ? kHeadroomBytes : 0),
                     bytes);
}

absl::StatusOr<rpc::Buffer> RegisteredMemory::AllocateJoint(uint64_t owner,
                                                            size_t bytes) {
  absl::MutexLock lock(&mutex_);
  Run run;
  if (!FindFreeRun(owner, memory::RoundUp(bytes, kPageBytes), &run)) {
    StartMakingJoint(owner, bytes);
    return absl::ResourceExhaustedError("there is no joint memory yet");
  }
  Block* const block = NewRunBlock(run);
  ++live_blocks_;
  block->MakeReady();
  return rpc::Buffer(block, block->data(), bytes);
}

void RegisteredMemory::TakeBack(rpc::Buffer buffer) {
  if (!cpus_read_ || buffer.size() > kMostTakenBack || !Owns(buffer) ||
      !buffer.block()->unique()) {
    return;
  }
  const size_t front = std::min(buffer.headroom(), kCacheLineBytes);
  fetcher_.FetchBack(buffer.mutable_data() - front, front + buffer.size());
}

RegisteredMemory::Block* RegisteredMemory::TakeSpare(int index) {
  if (index >= kClassesWithSpares) return nullptr;
  for (std::atomic<Block*>& slot : spares_[index]) {
    Block* block = slot.load(std::memory_order_relaxed);
    if (block == kClosed) return nullptr;
    if (block == nullptr) continue;
    block = slot.exchange(nullptr, std::memory_order_acquire);
    if (block != nullptr) return block;
  }
  return nullptr;
}

bool RegisteredMemory::KeepAsSpare(Block* block) {
  if (block->slab == nullptr) return false;
  const int index = block->slab->class_index;
  if (index >= kClassesWithSpares) return false;
  for (std::atomic<Block*>& slot : spares_[index]) {
    Block* none = nullptr;
    if (slot.load(std::memory_order_relaxed) == nullptr &&
        slot.compare_exchange_strong(none, block, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void RegisteredMemory::GiveUpSpares(Block* in_place) {
  for (Spares& spares : spares_) {
    for (std::atomic<Block*>& slot : spares) {
      Block* const block = slot.exchange(in_place, std::memory_order_acquire);
      if (block == nullptr || block == kClosed) continue;
      ReturnToSlab(block);
      --live_blocks_;
    }
  }
}

uint64_t RegisteredMemory::registered_bytes() const {
  absl::MutexLock lock(&mutex_);
  return registered_bytes_;
}

absl::StatusOr<RegisteredMemory::Block*> RegisteredMemory::TakeFromClass(
    int index) {
  SizeClass& size_class = classes_[index];
  if (size_class.partial == nullptr) {
    if (absl::Status status = AddSlab(index); !status.ok()) return status;
  }
  Slab* const slab = size_class.partial;
  Block* const block = slab->free;
  slab->free = block->next_free;
  if (slab->in_use++ == 0) --size_class.empty_slabs;
  if (slab->free == nullptr) slab->Unlink(size_class);
  return block;
}

absl::Status RegisteredMemory::AddSlab(int index) {
  const size_t stride = ClassBytes(index) + kHeadroomBytes;
  absl::StatusOr<Run> run = TakeRun(std::max(stride, kSmallestSlabBytes));
  if (!run.ok()) return run.status();
  auto* const slab = new Slab;
  slab->run = *run;
  slab->class_index = index;
  ibv_mr* const mr = run->arena->region->get();
  for (size_t at = 0; at + stride <= run->bytes; at += stride) {
    slab->blocks.push_back(
        std::make_unique<Block>(this, mr, run->data + at, stride));
    Block* const block = slab->blocks.back().get();
    block->slab = slab;
    block->next_free = slab->free;
    slab->free = block;
  }
  slab->Link(classes_[index]);
  ++classes_[index].empty_slabs;
  return absl::OkStatus();
}

absl::StatusOr<RegisteredMemory::Block*> RegisteredMemory::TakeRunBlock(
    size_t bytes) {
  absl::StatusOr<Run> run = TakeRun(bytes);
  if (!run.ok()) return run.status();
  return NewRunBlock(*run);
}

RegisteredMemory::Block* RegisteredMemory::NewRunBlock(const Run& run) {
  auto* const block =
      new Block(this, run.arena->region->get(), run.data, run.bytes);
  block->run = run;
  return block;
}

void RegisteredMemory::Return(Block* block) {
  if (KeepAsSpare(block)) return;
  std::function<void()> unused;
  {
    absl::MutexLock lock(&mutex_);
    if (block->slab != nullptr) {
      ReturnToSlab(block);
    } else {
      GiveRun(block->run);
      delete block;
    }
    if (--live_blocks_ == 0 && when_unused_ != nullptr) {
      unused = std::exchange(when_unused_, nullptr);
    }
  }
  if (unused != nullptr) unused();  // *this may be gone
}

void RegisteredMemory::WhenUnused(std::function<void()> unused) {
  {
    absl::MutexLock lock(&mutex_);
    GiveUpSpares(kClosed);
    if (live_blocks_ > 0) {
      when_unused_ = std::move(unused);
      return;
    }
  }
  unused();
}

bool RegisteredMemory::StayInUse() {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(when_unused_, nullptr) == nullptr) return false;
  GiveUpSpares(nullptr);
  return true;
}

void RegisteredMemory::ReturnToSlab(Block* block) {
  Slab* const slab = block->slab;
  SizeClass& size_class = classes_[slab->class_index];
  if (slab->free == nullptr) slab->Link(size_class);
  block->next_free = slab->free;
  slab->free = block;
  if (--slab->in_use > 0) return;
  // One empty slab is kept, so that a lone buffer that comes and goes does not
  // cut up pages each time.
  if (++size_class.empty_slabs == 1) return;
  slab->Unlink(size_class);
  --size_class.empty_slabs;
  GiveRun(slab->run);
  delete slab;
}

absl::StatusOr<RegisteredMemory::Run> RegisteredMemory::TakeRun(size_t bytes) {
  bytes = memory::RoundUp(bytes, kPageBytes);
  for (;;) {
    Run run;
    if (FindFreeRun(kShared, bytes, &run)) return run;
    if (growing_) {
      // By another thread, perhaps with room for this one.
      const auto done = +[](bool* growing) { return !*growing; };
      mutex_.Await(absl::Condition(done, &growing_));
      continue;
    }
    if (registered_bytes_ + bytes > budget_bytes_) {
      // What is kept for the next time is given up first.
      GiveUpSpares(nullptr);
      ReleaseEmptySlabs();
      if (FindFreeRun(kShared, bytes, &run)) return run;
      ReleaseFreeArenas();
      if (registered_bytes_ + bytes > budget_bytes_ &&
          WaitForJointWork(bytes)) {
        continue;
      }
    }
    // Others may take of what it adds before this one does.
    if (absl::Status status = Grow(bytes); !status.ok()) return status;
  }
}

// Best fit: the smallest run that is large enough.
bool RegisteredMemory::FindFreeRun(uint64_t owner, size_t bytes, Run* run) {
  const auto found = free_by_size_.lower_bound({owner, bytes, nullptr});
  if (found == free_by_size_.end() || std::get<0>(*found) != owner) {
    return false;
  }
  const auto at = free_by_address_.find(std::get<2>(*found));
  const Run whole = at->second;
  EraseFree(at);
  *run = {whole.data, bytes, whole.arena};
  if (whole.bytes > bytes) {
    InsertFree({whole.data + bytes, whole.bytes - bytes, whole.arena});
  }
  run->arena->used_bytes += bytes;
  return true;
}

void RegisteredMemory::GiveRun(const Run& run) {
  run.arena->used_bytes -= run.bytes;
  Run merged = run;
  auto after = free_by_address_.lower_bound(run.data);
  if (after != free_by_address_.end() && after->second.arena == run.arena &&
      after->second.data == run.data + run.bytes) {
    merged.bytes += after->second.bytes;
    EraseFree(after++);
  }
  if (after != free_by_address_.begin()) {
    auto before = std::prev(after);
    if (before->second.arena == run.arena &&
        before->second.data + before->second.bytes == run.data) {
      merged.data = before->second.data;
      merged.bytes += before->second.bytes;
      EraseFree(before);
    }
  }
  InsertFree(merged);
  if (run.arena->owner == kRetired && run.arena->used_bytes == 0) {
    ReleaseArena(arenas_.find(run.arena->region->data()));
  }
}

void RegisteredMemory::InsertFree(const Run& run) {
  free_by_address_[run.data] = run;
  free_by_size_.insert({run.arena->owner, run.bytes, run.data});
}

void RegisteredMemory::EraseFree(std::map<std::byte*, Run>::iterator run) {
  free_by_size_.erase(
      {run->second.arena->owner, run->second.bytes, run->second.data});
  free_by_address_.erase(run);
}

absl::Status RegisteredMemory::CheckBudget(size_t bytes) const {
  if (registered_bytes_ + bytes <= budget_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      bytes, " bytes of registered memory are wanted, ", registered_bytes_,
      " of the memory budget of ", budget_bytes_,
      " are in use: free buffers or raise verbena.memory_budget_bytes"));
}

absl::Status RegisteredMemory::Grow(size_t bytes) {
  if (absl::Status status = CheckBudget(bytes); !status.ok()) return status;
  const size_t arena_bytes = std::max(
      bytes,
      std::min<size_t>(next_arena_bytes_, budget_bytes_ - registered_bytes_) /
          kPageBytes * kPageBytes);
  registered_bytes_ += arena_bytes;
  growing_ = true;
  mutex_.Unlock();
  absl::StatusOr<std::unique_ptr<MemoryRegion>> region =
      MemoryRegion::Create(pd_, arena_bytes, access_);
  mutex_.Lock();
  growing_ = false;
  if (!region.ok()) {
    registered_bytes_ -= arena_bytes;
    return region.status();
  }
  next_arena_bytes_ = std::min(next_arena_bytes_ * 2, kLargestArenaBytes);
  AddArena(*std::move(region), kShared);
  return absl::OkStatus();
}

void RegisteredMemory::AddArena(std::unique_ptr<MemoryRegion> region,
                                uint64_t owner) {
  auto arena = std::make_unique<Arena>();
  arena->region = std::move(region);
  arena->owner = owner;
  std::byte* const data = arena->region->data();
  InsertFree({data, arena->region->size(), arena.get()});
  arenas_[data] = std::move(arena);
}

void RegisteredMemory::ReleaseEmptySlabs() {
  for (SizeClass& size_class : classes_) {
    for (Slab* slab = size_class.partial; slab != nullptr;) {
      Slab* const next = slab->next;
      if (slab->in_use == 0) {
        slab->Unlink(size_class);
        --size_class.empty_slabs;
        GiveRun(slab->run);
        delete slab;
      }
      slab = next;
    }
  }
}

void RegisteredMemory::ReleaseFreeArenas(uint64_t owner) {
  for (auto it = arenas_.begin(); it != arenas_.end();) {
    Arena& arena = *it->second;
    if (arena.used_bytes != 0 || (owner != kShared && arena.owner != owner)) {
      ++it;
      continue;
    }
    it = ReleaseArena(it);
  }
}

RegisteredMemory::ArenaMap::iterator RegisteredMemory::ReleaseArena(
    ArenaMap::iterator arena) {
  EraseFree(free_by_address_.find(arena->first));
  std::unique_ptr<MemoryRegion>& region = arena->second->region;
  if (arena->second->owner == kShared) {
    registered_bytes_ -= region->size();
  } else {
    joint_.released.push_back(std::move(region));
    joint_wake_.Signal();
  }
  return arenas_.erase(arena);
}

}  // namespace rdma
