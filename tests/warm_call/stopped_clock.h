// Lets time stand still for the program's own code.
//
// A count is to be the same on a busy machine as on a quiet one. But now and
// then the product looks at the clock: whether it is time for timers and
// events, and whether a handler takes long and should move to another thread.
// While the clock stands, it is not and does not.
//
// Linking this puts functions of its own in front of clock_gettime and of
// std::chrono::steady_clock::now, for what is linked statically; libraries'
// own waiting goes by the kernel's clock as ever.
//
// Thread rule: one thread, while no other one waits for a time.
#ifndef VERBENA_TESTS_WARM_CALL_STOPPED_CLOCK_H_
#define VERBENA_TESTS_WARM_CALL_STOPPED_CLOCK_H_

namespace warm_call {

void StopClock();
void StartClock();

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_STOPPED_CLOCK_H_
