"""cc_test, and cc_library for what only tests use, compiled in half the time.

A test's headers take longer to compile than the test itself, so that all begin with
one that is precompiled. And what gtest's macros become has so many pointers that their
checks take longer than all else: of UndefinedBehaviorSanitizer's those are left to the
code under test, and to AddressSanitizer beside it.
"""

load("//tools/prelude:precompiled_header.bzl", "include_precompiled")

TEST_COPTS = ["-fno-sanitize=alignment,null,object-size,vptr"]

_PRELUDE = "//tests/prelude:prelude"
_COPTS = TEST_COPTS + include_precompiled(
    _PRELUDE,
    "prelude.h",
    clang_header = "large_prelude.h",
)

def cc_test(name, copts = [], deps = [], prelude = True, **kwargs):
    """cc_test; without a prelude where the order of headers is what it tests."""
    native.cc_test(
        name = name,
        copts = (_COPTS if prelude else TEST_COPTS) + copts,
        deps = deps + ([_PRELUDE] if prelude else []),
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
