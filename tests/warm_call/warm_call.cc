// Makes warm calls, on one thread for both sides (one_thread.h), and says what
// they take. For warm_call_test.
//
//   warm_call counts FD FORM prints lines "EXTRA SIDE ALLOCATIONS LOCKS
//                            SYSTEM_CALLS LAST", of kCalls calls of
//                            kForms[FORM]; LAST is the number of the last
//                            system call. FD: a tally (tally.h)
//   warm_call instructions [FORM]
//                            under valgrind --tool=callgrind --instr-atstart=no
//                            --collect-atstart=no: makes dumps named
//                            "EXTRA SIDE", of kCalls calls of kForms[FORM];
//                            default: the first
//
// SIDE is client or server. EXTRA is what is added to the way of each call on
// both sides: "nothing", or something that the counting must find.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "tests/warm_call/counted_functions.h"
#include "tests/warm_call/one_thread.h"
#include "tests/warm_call/plan.h"
#include "tests/warm_call/tally.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_DUMP_STATS_AT(name) static_cast<void>(name)
#endif

namespace warm_call {
namespace {

ABSL_CONST_INIT absl::Mutex absl_mutex(absl::kConstInit);
std::mutex pthread_mutex;

// Does what the name says, once.
void Do(Extra extra) {
  switch (extra) {
    case Extra::kNothing:
      return;
    case Extra::kAllocation: {
      void* volatile const memory = std::malloc(1);
      return std::free(memory);
    }
    case Extra::kPthreadLock: {
      std::lock_guard lock(pthread_mutex);
      return;
    }
    case Extra::kAbslLock: {
      absl::MutexLock lock(&absl_mutex);
      return;
    }
    case Extra::kSystemCall:
      ::syscall(SYS_getppid);
      return;
    case Extra::kInstructions: {
      static_assert(kExtraInstructions == 1000 && kExtraStores == 100);
      volatile char byte;
      asm volatile(
          ".rept 900\n\tnop\n\t.endr\n\t"
          ".rept 100\n\tmovb $0, %0\n\t.endr"
          : "=m"(byte));
      return;
    }
  }
}

// Calls, and the bookkeeping of whose turn it is.
class Measurement {
 public:
  Measurement(const Form& form, Tally* tally)
      : tally_(tally),
        both_(
            form,
            [this](bool server) {
              SwitchTo(server ? Side::kServer : Side::kClient);
            },
            [this] { Do(extra_); }) {}

  void Add(Extra extra) { extra_ = extra; }
  // The side whose instructions are counted, where any are.
  void Collect(Side side) { collected_ = side; }

  void Make(int count) {
    for (int i = 0; i < count; ++i) {
      SwitchTo(Side::kClient);
      Do(extra_);
      both_.Call();
      SwitchTo(Side::kNobody);
    }
  }

 private:
  void SwitchTo(Side side) {
    if (tally_ != nullptr) tally_->SetSide(side);
    const bool collect = collected_ != Side::kNobody && side == collected_;
    if (collect == collecting_) return;
    collecting_ = collect;
    CALLGRIND_TOGGLE_COLLECT;
  }

  Tally* const tally_;
  Extra extra_ = Extra::kNothing;
  Side collected_ = Side::kNobody;
  bool collecting_ = false;
  OneThread both_;
};

// ---- Counts.

void PrintDifference(const std::string& name, const Counts& before,
                     const Counts& after) {
  absl::PrintF("%s %d %d %d %d\n", name, after.allocations - before.allocations,
               after.locks - before.locks,
               after.system_calls - before.system_calls,
               after.last_system_call);
}

int CountCalls(int fd, const Form& form) {
  Tally& tally = Tally::Map(fd);
  CountOnThisThread(&tally);
  Measurement calls(form, &tally);
  for (const Extra extra :
       {Extra::kNothing, Extra::kAllocation, Extra::kPthreadLock,
        Extra::kAbslLock, Extra::kSystemCall}) {
    calls.Add(extra);
    const Counts client = tally[Side::kClient];
    const Counts server = tally[Side::kServer];
    calls.Make(kCalls);
    PrintDifference(NameOf(extra, Side::kClient), client, tally[Side::kClient]);
    PrintDifference(NameOf(extra, Side::kServer), server, tally[Side::kServer]);
  }
  return 0;
}

// ---- Instructions.

int DumpInstructions(const Form& form) {
  if (!RUNNING_ON_VALGRIND) {
    std::fprintf(stderr, "not under valgrind, or built without its headers\n");
    return kNoValgrind;
  }
  Measurement calls(form, nullptr);
  CALLGRIND_START_INSTRUMENTATION;
  for (const Extra extra : {Extra::kNothing, Extra::kInstructions}) {
    calls.Add(extra);
    for (const Side side : {Side::kClient, Side::kServer}) {
      calls.Collect(side);
      calls.Make(kCalls);
      const std::string name = NameOf(extra, side);
      CALLGRIND_DUMP_STATS_AT(name.c_str());
    }
  }
  CALLGRIND_STOP_INSTRUMENTATION;
  return 0;
}

int Main(const std::vector<std::string>& words) {
  int fd = -1;
  size_t form = 0;
  if (words.size() == 3 && words[0] == "counts" &&
      absl::SimpleAtoi(words[1], &fd) && absl::SimpleAtoi(words[2], &form) &&
      form < std::size(kForms)) {
    return CountCalls(fd, kForms[form]);
  }
  if (!words.empty() && words[0] == "instructions" &&
      (words.size() == 1 ||
       (words.size() == 2 && absl::SimpleAtoi(words[1], &form) &&
        form < std::size(kForms)))) {
    return DumpInstructions(kForms[form]);
  }
  std::fprintf(stderr, "see the comment in tests/warm_call/warm_call.cc\n");
  return 2;
}

}  // namespace
}  // namespace warm_call

int main(int argc, char** argv) {
  return warm_call::Main({argv + 1, argv + argc});
}
