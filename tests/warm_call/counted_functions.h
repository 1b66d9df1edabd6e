// Counts a thread's allocations and locks.
//
// Linking this puts functions of its own in front of the program's malloc (and
// so of operator new), pthread_mutex_lock and absl::Mutex::Lock, and of others
// like them: the .cc file is the list of what "allocation" and "lock" mean.
// Where a name has changed nothing is counted: warm_call_test tries.
//
// Thread rule: any thread.
#ifndef VERBENA_TESTS_WARM_CALL_COUNTED_FUNCTIONS_H_
#define VERBENA_TESTS_WARM_CALL_COUNTED_FUNCTIONS_H_

#include "tests/warm_call/tally.h"

namespace warm_call {

// From now on, what this thread does is counted in `tally`; null: no more.
void CountOnThisThread(Tally* tally);

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_COUNTED_FUNCTIONS_H_
