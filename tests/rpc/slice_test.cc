// Slices, and the memory under them: who copies, who shares, and when what was
// taken over is given back.
#include "rpc/slice.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/buffer.h"

namespace rpc {
namespace {

std::string Text(const Slice& slice) {
  return std::string(slice.begin(), slice.end());
}

// Memory that counts how often it is given back, and with what.
struct Owned {
  static void Destroy(void* owned) { ++static_cast<Owned*>(owned)->destroyed; }
  static void DestroyByLength(void* bytes, size_t len) {
    // The bytes are the beginning of the object.
    static_cast<Owned*>(bytes)->length = len;
    Destroy(bytes);
  }

  char bytes[8] = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};
  int destroyed = 0;
  size_t length = 0;
};

TEST(SliceTest, ByDefaultEmpty) {
  const Slice slice;
  EXPECT_EQ(slice.size(), 0u);
  EXPECT_EQ(slice.begin(), slice.end());
}

TEST(SliceTest, OfASizeIsForWriting) {
  const Slice slice(5);
  ASSERT_EQ(slice.size(), 5u);
  std::memcpy(const_cast<uint8_t*>(slice.begin()), "hello", 5);
  EXPECT_EQ(Text(slice), "hello");
}

TEST(SliceTest, CopiesWhatItIsMadeOf) {
  std::string text = "hello";
  const Slice of_string = text;
  const Slice of_bytes(text.data(), text.size());
  text = "other";
  EXPECT_EQ(Text(of_string), "hello");
  EXPECT_EQ(Text(of_bytes), "hello");
  EXPECT_EQ(Slice(std::string()).size(), 0u);
  EXPECT_EQ(Slice(nullptr, 0).size(), 0u);
}

TEST(SliceTest, StaticMemoryIsReferredTo) {
  static const char kText[] = "constant";
  const Slice slice(kText, 8, Slice::STATIC_SLICE);
  EXPECT_EQ(static_cast<const void*>(slice.begin()), kText);
  EXPECT_EQ(Text(slice), "constant");
  const Slice part = slice.sub(2, 4);
  EXPECT_EQ(static_cast<const void*>(part.begin()), kText + 2);
  EXPECT_EQ(slice.buffer().block(), nullptr);
  EXPECT_EQ(part.buffer().headroom(), 0u);
}

TEST(SliceTest, DestroysWithTheLastReference) {
  Owned owned;
  {
    Slice slice(owned.bytes, 8, &Owned::Destroy, &owned);
    EXPECT_EQ(static_cast<const void*>(slice.begin()), owned.bytes);
    Slice part = slice.sub(2, 5);
    BufferChain chain(part.buffer());
    slice = Slice();
    part = Slice();
    EXPECT_EQ(chain.ToString(), "cde");
    EXPECT_EQ(owned.destroyed, 0);
  }
  EXPECT_EQ(owned.destroyed, 1);
}

TEST(SliceTest, DestroyGetsWhatItAsksFor) {
  Owned owned;
  { const Slice slice(&owned, 3, &Owned::Destroy); }
  EXPECT_EQ(owned.destroyed, 1);
  {
    const Slice slice(&owned, 3, &Owned::DestroyByLength);
    const Slice part = slice.sub(1, 2);
  }
  EXPECT_EQ(owned.destroyed, 2);
  EXPECT_EQ(owned.length, 3u);
}

TEST(SliceTest, DestroysWhatHasNoBytes) {
  Owned owned;
  {
    const Slice slice(nullptr, 0, &Owned::Destroy, &owned);
    BufferChain chain(slice.buffer());
    EXPECT_TRUE(chain.empty());
    EXPECT_EQ(owned.destroyed, 0);
  }
  EXPECT_EQ(owned.destroyed, 1);
}

TEST(SliceTest, DestroysOnceWhicheverThreadIsLast) {
  for (int round = 0; round < 100; ++round) {
    Owned owned;
    std::vector<std::thread> threads;
    {
      const Slice slice(owned.bytes, 8, &Owned::Destroy, &owned);
      for (size_t i = 0; i < 3; ++i) {
        threads.emplace_back([part = slice.sub(i, i + 1), i] {
          EXPECT_EQ(Text(part), std::string(1, static_cast<char>('a' + i)));
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(owned.destroyed, 1);
  }
}

TEST(SliceTest, SubShares) {
  const Slice slice(std::string("0123456789"));
  const Slice part = slice.sub(2, 7).sub(1, 3);
  EXPECT_EQ(Text(part), "34");
  EXPECT_EQ(part.begin(), slice.begin() + 3);
  EXPECT_EQ(Text(slice.sub(0, 10)), "0123456789");
  EXPECT_EQ(slice.sub(10, 10).size(), 0u);
}

TEST(SliceTest, SubStaysWithinTheSlice) {
  const Slice slice = Slice(std::string("0123456789")).sub(0, 5);
  EXPECT_EQ(Text(slice.sub(3, SIZE_MAX)), "34");
  EXPECT_EQ(slice.sub(7, 9).size(), 0u);
  EXPECT_EQ(slice.sub(4, 2).size(), 0u);
}

TEST(SliceTest, CopiesShareAndMovesLeaveNothing) {
  Slice slice(std::string("hello"));
  const uint8_t* const address = slice.begin();
  Slice copy = slice;
  EXPECT_EQ(copy.begin(), address);
  Slice moved = std::move(slice);
  EXPECT_EQ(moved.begin(), address);
  EXPECT_EQ(slice.size(), 0u);  // NOLINT(bugprone-use-after-move)
  moved = copy;
  copy = Slice(std::string("other"));
  EXPECT_EQ(Text(moved), "hello");
}

TEST(SliceTest, IsABuffer) {
  Buffer buffer = Buffer::CopyOf("hello");
  const std::byte* const address = buffer.data();
  const Slice slice(std::move(buffer));
  EXPECT_EQ(slice.buffer().data(), address);
  EXPECT_TRUE(slice.buffer().block()->unique());
}

// ---- BufferChain ----

BufferChain ThreePieces() {
  BufferChain chain(Buffer::CopyOf("abc"));
  chain.Append(Buffer::CopyOf("de"));
  chain.Append(Buffer::CopyOf("fghi"));
  return chain;
}

// Of none, one and several buffers.
std::vector<BufferChain> ChainsOfEachKind() {
  return {BufferChain(), BufferChain(Buffer::CopyOf("one")), ThreePieces()};
}

TEST(BufferChainTest, ACopySharesAndStays) {
  for (const BufferChain& chain : ChainsOfEachKind()) {
    for (BufferChain target : ChainsOfEachKind()) {
      BufferChain copy(chain);
      target = chain;
      copy.Append(Buffer::CopyOf("!"));
      EXPECT_EQ(copy.ToString(), chain.ToString() + "!");
      EXPECT_EQ(target.ToString(), chain.ToString());
      EXPECT_EQ(target.buffers().size(), chain.buffers().size());
      if (!chain.empty()) {
        EXPECT_EQ(target.buffers()[0].data(), chain.buffers()[0].data());
      }
      target = *&target;
      EXPECT_EQ(target.ToString(), chain.ToString());
    }
  }
}

TEST(BufferChainTest, AMovedFromChainIsEmptyAndUsable) {
  const std::vector<BufferChain> kinds = ChainsOfEachKind();
  for (BufferChain chain : kinds) {
    for (BufferChain target : kinds) {
      const std::string whole = chain.ToString();
      const size_t count = chain.buffers().size();
      target = std::move(chain);
      EXPECT_EQ(target.ToString(), whole);
      EXPECT_EQ(target.buffers().size(), count);
      EXPECT_TRUE(chain.empty());  // NOLINT(bugprone-use-after-move)
      EXPECT_TRUE(chain.contiguous());
      EXPECT_TRUE(chain.buffers().empty());
      chain.Append(Buffer::CopyOf("next"));
      EXPECT_EQ(chain.ToString(), "next");
      chain = std::move(target);
      EXPECT_EQ(chain.ToString(), whole);
    }
  }
}

TEST(BufferChainTest, LetsGoOfWhatItHeldWhenAssignedToOrGone) {
  for (BufferChain other : ChainsOfEachKind()) {
    const Buffer kept = Buffer::CopyOf("kept");
    {
      BufferChain one(kept);
      BufferChain several(kept);
      several.Append(kept);
      EXPECT_FALSE(kept.block()->unique());
      one = other;
      several = std::move(other);
      EXPECT_TRUE(kept.block()->unique());
      one = BufferChain(kept);
      several.clear();
      several.Append(Buffer::CopyOf("x"));
      several.Append(one);
      EXPECT_EQ(several.ToString(), "xkept");
    }
    EXPECT_TRUE(kept.block()->unique());
  }
}

TEST(BufferChainTest, RemovesSuffixesOfEverySize) {
  const std::string whole = ThreePieces().ToString();
  for (size_t count = 0; count <= whole.size(); ++count) {
    BufferChain chain = ThreePieces();
    chain.remove_suffix(count);
    const size_t left = whole.size() - count;
    EXPECT_EQ(chain.size(), left);
    EXPECT_EQ(chain.ToString(), whole.substr(0, left));
    EXPECT_EQ(chain.contiguous(), left <= 3) << left;
    EXPECT_EQ(chain.buffers().size(), left == 0   ? 0u
                                      : left <= 3 ? 1u
                                      : left <= 5 ? 2u
                                                  : 3u);
    chain.Append(Buffer::CopyOf("!"));
    EXPECT_EQ(chain.ToString(), whole.substr(0, left) + "!");
  }
}

TEST(BufferChainTest, WhatIsRemovedIsLetGo) {
  const Buffer kept = Buffer::CopyOf("kept");
  BufferChain chain(Buffer::CopyOf("first"));
  chain.Append(kept);
  chain.remove_suffix(1);
  EXPECT_FALSE(kept.block()->unique());
  chain.remove_suffix(3);
  EXPECT_TRUE(kept.block()->unique());
}

}  // namespace
}  // namespace rpc
