#include "tests/rpc/loopback_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace rpc::testing {
namespace {

// Small blocks are kept, so that a warm call allocates nothing here.
constexpr size_t kSpareBytes = 8192;
// One domain for all: memory of one endpoint is registered with the other too.
constexpr char kDomain = 0;

}  // namespace

struct LoopbackMemory::State {
  const uint64_t budget_bytes;
  mutable absl::Mutex mutex;
  uint64_t bytes_in_use ABSL_GUARDED_BY(mutex) = 0;
  std::vector<Block*> spares ABSL_GUARDED_BY(mutex);
};

class LoopbackMemory::Block final : public BufferBlock {
 public:
  explicit Block(size_t capacity)
      : BufferBlock(new std::byte[capacity], capacity, &kDomain),
        memory_(data()) {}
  ~Block() override { delete[] memory_; }

  void Lend(std::shared_ptr<LoopbackMemory> owner, size_t bytes) {
    owner_ = std::move(owner);
    lent_bytes_ = bytes;
    ResetRefs();
  }

 private:
  void Recycle() override {
    const std::shared_ptr<LoopbackMemory> owner = std::move(owner_);
    State& state = *owner->state_;
    absl::MutexLock lock(&state.mutex);
    state.bytes_in_use -= lent_bytes_;
    if (capacity() == kSpareBytes) {
      state.spares.push_back(this);
    } else {
      delete this;
    }
  }

  std::byte* const memory_;
  std::shared_ptr<LoopbackMemory> owner_;
  size_t lent_bytes_ = 0;
};

LoopbackMemory::LoopbackMemory(uint64_t budget_bytes)
    : state_(new State{.budget_bytes = budget_bytes}) {}

LoopbackMemory::~LoopbackMemory() {
  absl::MutexLock lock(&state_->mutex);
  for (Block* block : state_->spares) delete block;
}

absl::StatusOr<Buffer> LoopbackMemory::Allocate(size_t bytes) {
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->bytes_in_use + bytes > state_->budget_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the memory budget of ", state_->budget_bytes, " bytes is used up"));
    }
  }
  return NewBuffer(bytes);
}

Buffer LoopbackMemory::NewBuffer(size_t bytes) {
  Block* block = nullptr;
  {
    absl::MutexLock lock(&state_->mutex);
    state_->bytes_in_use += bytes;
    if (bytes <= kSpareBytes && !state_->spares.empty()) {
      block = state_->spares.back();
      state_->spares.pop_back();
    }
  }
  if (block == nullptr) block = new Block(std::max(bytes, kSpareBytes));
  block->Lend(shared_from_this(), bytes);
  return Buffer(block, block->data(), bytes);
}

BufferChain LoopbackMemory::Copy(absl::Span<const std::byte> bytes,
                                 size_t piece_bytes) {
  BufferChain chain;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), piece_bytes);
    Buffer buffer = NewBuffer(size);
    std::memcpy(buffer.mutable_data(), bytes.data(), size);
    chain.Append(std::move(buffer));
    bytes.remove_prefix(size);
  }
  return chain;
}

BufferChain LoopbackMemory::PassOrCopy(BufferChain chain) {
  const bool known = std::all_of(chain.buffers().begin(), chain.buffers().end(),
                                 [](const Buffer& buffer) {
                                   return buffer.block() != nullptr &&
                                          buffer.block()->domain() == &kDomain;
                                 });
  if (known) return chain;
  Buffer copy = NewBuffer(chain.size());
  chain.CopyTo(copy.mutable_data());
  return BufferChain(std::move(copy));
}

uint64_t LoopbackMemory::bytes_in_use() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->bytes_in_use;
}

}  // namespace rpc::testing
