// What must hold of DecodeFrame for any bytes at all: shared by the randomised
// test and the fuzzer.
#ifndef VERBENA_TESTS_TRANSPORT_FRAME_CHECK_H_
#define VERBENA_TESTS_TRANSPORT_FRAME_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "rdma_transport/frame.h"

namespace rdma::testing {

// Decodes both ways, which must not differ, and holds what was accepted against
// the bytes that it came from: the parts lie one behind the other inside the
// payload and fill it, every field encodes back to the very bytes, every
// segment is one that can be read.
//
// Returns null, or what does not hold. `*accepted` says what DecodeFrame said.
// The payload is copied to memory of just its size, so that AddressSanitizer
// sees a read beyond it.
const char* CheckDecode(uint32_t tag, absl::Span<const std::byte> payload,
                        bool* accepted);

}  // namespace rdma::testing

#endif  // VERBENA_TESTS_TRANSPORT_FRAME_CHECK_H_
