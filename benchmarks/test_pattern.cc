#include "benchmarks/test_pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace benchmarks {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio

// The finalizer of splitmix64: every bit of `x` decides about every bit.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Takes bytes in pieces of any size and sums them word by word.
class Summer {
 public:
  void Add(std::string_view bytes) {
    length_ += bytes.size();
    while (!bytes.empty() && partial_size_ != 0) TakeByte(&bytes);
    while (bytes.size() >= sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof(word));
      AddWord(word);
      bytes.remove_prefix(sizeof(word));
    }
    while (!bytes.empty()) TakeByte(&bytes);
  }

  uint64_t Finish() {
    if (partial_size_ != 0) AddWord(partial_);
    return Mix(sum_ ^ Mix(length_));
  }

 private:
  void TakeByte(std::string_view* bytes) {
    partial_ |= uint64_t{static_cast<unsigned char>(bytes->front())}
                << (8 * partial_size_);
    bytes->remove_prefix(1);
    if (++partial_size_ < sizeof(uint64_t)) return;
    AddWord(partial_);
    partial_ = 0;
    partial_size_ = 0;
  }

  // Order counts: each word is followed by a rotation and a multiplication.
  void AddWord(uint64_t word) { sum_ = std::rotl(sum_ ^ word, 29) * kOdd; }

  uint64_t sum_ = kOdd;
  uint64_t length_ = 0;
  uint64_t partial_ = 0;
  size_t partial_size_ = 0;
};

}  // namespace

void FillTestPattern(char* data, size_t size, uint64_t seed) {
  uint64_t state = Mix(seed + kOdd);
  while (size > 0) {
    const uint64_t word = Mix(state += kOdd);
    const size_t count = std::min(size, sizeof(word));
    std::memcpy(data, &word, count);
    data += count;
    size -= count;
  }
}

std::string TestPattern(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  FillTestPattern(bytes.data(), size, seed);
  return bytes;
}

uint64_t Checksum(std::string_view bytes) {
  Summer summer;
  summer.Add(bytes);
  return summer.Finish();
}

uint64_t Checksum(const rpc::BufferChain& chain) {
  Summer summer;
  for (const rpc::Buffer& buffer : chain.buffers()) summer.Add(buffer.view());
  return summer.Finish();
}

bool Equals(const rpc::BufferChain& chain, std::string_view expected) {
  if (chain.size() != expected.size()) return false;
  for (const rpc::Buffer& buffer : chain.buffers()) {
    if (buffer.view() != expected.substr(0, buffer.size())) return false;
    expected.remove_prefix(buffer.size());
  }
  return true;
}

}  // namespace benchmarks
