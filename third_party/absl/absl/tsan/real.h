// ThreadSanitizer and the distribution's Abseil.
//
// That Abseil is not built for ThreadSanitizer, which therefore sees the memory
// that, say, an absl::Mutex protects, but no mutex, and reports races that are
// none. The files of this folder, linked into binaries of that configuration
// only, stand in front of the library: each function that orders threads tells
// the sanitizer so and calls the real one. An Abseil built with the sanitizer
// needs none of this.
//
// Symbols of a program come before those of its libraries, which is all that
// this needs of the linker. tests/sanitizers shows that it works.
#ifndef VERBENA_THIRD_PARTY_ABSL_TSAN_REAL_H_
#define VERBENA_THIRD_PARTY_ABSL_TSAN_REAL_H_

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "absl/base/options.h"

namespace verbena_tsan {

#define VERBENA_QUOTE_EXPANDED(text) #text
#define VERBENA_QUOTE(macro) VERBENA_QUOTE_EXPANDED(macro)

// The library's function, by `scope` and `rest` of its mangled name around
// those of the namespaces: "N" or "NK", and what follows them. A member
// function is called as one that takes `this` first, which is what the ABI of
// C++ makes of it. Ends the program where the library has no such function:
// then it is not the version that these files are for.
template <typename Function>
Function* Real(const char* rest, const char* scope = "N") {
  const std::string inner = VERBENA_QUOTE(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string symbol = std::string("_Z") + scope + "4absl" +
                             std::to_string(inner.size()) + inner + rest;
  void* const address = dlsym(RTLD_NEXT, symbol.c_str());
  if (address == nullptr) std::abort();
  return reinterpret_cast<Function*>(address);
}

#undef VERBENA_QUOTE
#undef VERBENA_QUOTE_EXPANDED

}  // namespace verbena_tsan

#endif  // VERBENA_THIRD_PARTY_ABSL_TSAN_REAL_H_
