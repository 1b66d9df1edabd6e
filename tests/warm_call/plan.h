// What the program warm_call does, and the test that runs it reads.
#ifndef VERBENA_TESTS_WARM_CALL_PLAN_H_
#define VERBENA_TESTS_WARM_CALL_PLAN_H_

#include <cstddef>
#include <string>

#include "tests/warm_call/tally.h"

namespace warm_call {

// What is added to a call on both sides, to show that it is found.
enum class Extra {
  kNothing,
  kAllocation,
  kPthreadLock,
  kAbslLock,
  kSystemCall,
  kInstructions,  // kExtraInstructions of them, kExtraStores of which store
};
inline constexpr int kExtraInstructions = 1000;
inline constexpr int kExtraStores = 100;

// Messages: one that is sent as it is posted, one out of registered memory, and
// one of parts (kSmallBytes each).
inline constexpr int kSmallBytes = 64;
inline constexpr int kLargerBytes = 8192;

// What a call is like.
struct Form {
  const char* name;
  int message_bytes;
  bool callback_server;
  bool callback_client;
  bool has_deadline = false;
  int attachment_bytes = 0;  // each way
  // Of the message, instead of bytes.
  constexpr bool has_parts() const {
    return message_bytes == 0 && attachment_bytes == 0;
  }
};
inline constexpr size_t kBlockingForms = 6;  // the first
inline constexpr Form kForms[] = {
    {"Small", kSmallBytes, false, false},
    {"Larger", kLargerBytes, false, false},
    {"OfParts", 0, false, false},
    {"SmallWithDeadline", kSmallBytes, false, false, true},
    {"WithAttachment", kSmallBytes, false, false, false, kLargerBytes},
    {"AttachmentAlone", 0, false, false, false, kLargerBytes},
    {"SmallToCallbackServer", kSmallBytes, true, false},
    {"OfPartsToCallbackServer", 0, true, false},
    {"SmallFromCallbackClient", kSmallBytes, false, true},
    {"OfPartsFromCallbackClient", 0, true, true},
};

// Of each count. Many times what a connection does once for some frames, such
// as having a send signaled or receives posted again.
inline constexpr int kCalls = 640;

// The program's exit status where it cannot count instructions.
inline constexpr int kNoValgrind = 77;

// "nothing client".
inline std::string NameOf(Extra extra, Side side) {
  constexpr const char* kExtras[] = {"nothing",      "allocation",
                                     "pthread_lock", "absl_lock",
                                     "system_call",  "instructions"};
  return std::string(kExtras[static_cast<int>(extra)]) +
         (side == Side::kClient ? " client" : " server");
}

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_PLAN_H_
