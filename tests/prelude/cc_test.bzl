"""cc_test, and cc_library for what only tests use, compiled in a third of the time.

A test's headers take longer to compile than the test itself, so that all begin with
one that is precompiled; and what gtest's macros become takes UndefinedBehaviorSanitizer
longer than anything else. It looks at what is tested, not at the tests.
"""

TEST_COPTS = ["-fno-sanitize=undefined"]

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
