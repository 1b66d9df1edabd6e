"""cc_test, and cc_library for what only tests use, compiled in half the time.

A test's headers take longer to compile than the test itself, so that all begin with
one that is precompiled. And what gtest's macros become has so many pointers that their
checks take longer than all else: of UndefinedBehaviorSanitizer's those are left to the
code under test, and to AddressSanitizer beside it.
"""

TEST_COPTS = ["-fno-sanitize=alignment,null,object-size,vptr"]

_COPTS = TEST_COPTS + ["-include", "prelude.h"]
_PRELUDE = "//tests/prelude"

def cc_test(name, copts = [], deps = [], **kwargs):
    native.cc_test(
        name = name,
        copts = _COPTS + copts,
        deps = deps + [_PRELUDE],
        **kwargs
    )

def cc_test_library(name, copts = [], deps = [], **kwargs):
    native.cc_library(
        name = name,
        testonly = True,
        copts = _COPTS + copts,
        deps = deps + [_PRELUDE],
        **kwargs
    )
