#include "rpc/slice.h"

#include <algorithm>
#include <string_view>

namespace rpc {
namespace {

std::string_view View(const void* buf, size_t len) {
  return {static_cast<const char*>(buf), len};
}

}  // namespace

Slice::Slice(size_t len) : buffer_(Buffer::FromHeap(len)) {}

Slice::Slice(const void* buf, size_t len)
    : buffer_(Buffer::CopyOf(View(buf, len))) {}

Slice::Slice(const std::string& str) : buffer_(Buffer::CopyOf(str)) {}

Slice::Slice(const void* buf, size_t len, StaticSlice)
    : buffer_(Buffer::Unowned(View(buf, len))) {}

Slice::Slice(void* buf, size_t len, void (*destroy)(void*), void* user_data)
    : buffer_(Buffer::Adopt(buf, len, destroy, user_data)) {}

Slice::Slice(void* buf, size_t len, void (*destroy)(void*))
    : Slice(buf, len, destroy, buf) {}

Slice::Slice(void* buf, size_t len, void (*destroy)(void*, size_t))
    : buffer_(Buffer::Adopt(buf, len, destroy)) {}

Slice Slice::sub(size_t begin, size_t end) const {
  end = std::min(end, size());
  if (begin >= end) return Slice();
  return Slice(buffer_.Slice(begin, end - begin));
}

}  // namespace rpc
