// libFuzzer's entry to the frame decoder. The input's first four bytes are the
// tag, the rest is the payload. See docs/testing.md, "Fuzzing".
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/transport/frame_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t tag;
  if (size < sizeof(tag)) return 0;
  std::memcpy(&tag, data, sizeof(tag));
  bool accepted = false;
  const char* const wrong = rdma::testing::CheckDecode(
      tag,
      {reinterpret_cast<const std::byte*>(data) + sizeof(tag),
       size - sizeof(tag)},
      &accepted);
  if (wrong != nullptr) {
    std::fprintf(stderr, "DecodeFrame accepted %s\n", wrong);
    std::abort();
  }
  return 0;
}
