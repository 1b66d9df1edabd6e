#include "tests/warm_call/counted_functions.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "absl/synchronization/mutex.h"

namespace warm_call {
namespace {

// Null on threads that do not count.
constinit thread_local Tally* mine = nullptr;

void CountAllocation() {
  if (mine != nullptr) mine->CountAllocation();
}

void CountLock() {
  if (mine != nullptr) mine->CountLock();
}

// The C library's own function of a name that stands for another one here.
template <typename Lock>
auto Real(const char* name) {
  return reinterpret_cast<int (*)(Lock*)>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void CountOnThisThread(Tally* tally) { mine = tally; }

}  // namespace warm_call

// What is put in front. The C library's allocator has a second set of names,
// made for this; its locks are looked up.

// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses)
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) noexcept {
  warm_call::CountAllocation();
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) noexcept {
  warm_call::CountAllocation();
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) noexcept {
  warm_call::CountAllocation();
  return __libc_realloc(memory, bytes);
}

void* memalign(size_t alignment, size_t bytes) noexcept {
  warm_call::CountAllocation();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  warm_call::CountAllocation();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  warm_call::CountAllocation();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

#define COUNT_PTHREAD_LOCK(name, Lock)                     \
  int name(Lock* lock) noexcept {                          \
    static const auto real = warm_call::Real<Lock>(#name); \
    warm_call::CountLock();                                \
    return real(lock);                                     \
  }

COUNT_PTHREAD_LOCK(pthread_mutex_lock, pthread_mutex_t)
COUNT_PTHREAD_LOCK(pthread_mutex_trylock, pthread_mutex_t)
COUNT_PTHREAD_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNT_PTHREAD_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)

#undef COUNT_PTHREAD_LOCK

// Abseil is linked statically: the linker puts __wrap_ functions in front
// (BUILD.bazel has the same list). Debian 12's Abseil is called debian3.
#define COUNT_ABSL_LOCK(Result, name)                              \
  Result __real__ZN4absl7debian35Mutex##name(absl::Mutex*);        \
  Result __wrap__ZN4absl7debian35Mutex##name(absl::Mutex* mutex) { \
    warm_call::CountLock();                                        \
    return __real__ZN4absl7debian35Mutex##name(mutex);             \
  }

COUNT_ABSL_LOCK(void, 4LockEv)
COUNT_ABSL_LOCK(bool, 7TryLockEv)
COUNT_ABSL_LOCK(void, 10ReaderLockEv)

#undef COUNT_ABSL_LOCK

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses)
