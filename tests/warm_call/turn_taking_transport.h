// A client transport that has something done before a thread waits: the RDMA
// transport under another scheme, "turns://HOST:PORT", and nothing else.
#ifndef VERBENA_TESTS_WARM_CALL_TURN_TAKING_TRANSPORT_H_
#define VERBENA_TESTS_WARM_CALL_TURN_TAKING_TRANSPORT_H_

#include <functional>

namespace warm_call {

// Registers the scheme. `before_wait` is called by each Wait, on its thread,
// before it begins. Once in a process.
void RegisterTurnTakingTransport(std::function<void()> before_wait);

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_TURN_TAKING_TRANSPORT_H_
