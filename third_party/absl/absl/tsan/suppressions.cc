// The mutexes' graph of what is locked in which order has a lock of its own
// within the library. What it moves under that, with many mutexes, is seen by
// ThreadSanitizer, as memmove is its own; the lock is not.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libabsl_graphcycles_internal.so\n";
}
