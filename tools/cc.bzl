"""cc_library for rpc/, rdma_transport/ and memory/, compiled in three quarters of the time;
tuned_cc_library; cc23_library.

A source file's headers take longer to compile than itself. So, unless it is optimized,
each begins with one that is precompiled (//tools/prelude).
"""

load("//tools/prelude:precompiled_header.bzl", "include_precompiled")

_PRELUDE = "//tools/prelude:library"

def cc_library(copts = [], deps = [], **kwargs):
    native.cc_library(
        copts = include_precompiled(
            _PRELUDE,
            "library_prelude.h",
            unless = ["//tools:optimized"],
        ) + copts,
        deps = deps + select({
            "//tools:optimized": [],
            "//conditions:default": [_PRELUDE],
        }),
        **kwargs
    )

# GCC's generic tuning clears objects of more than a hundred bytes by `rep stos`,
# which takes several times as long as storing to them; a call has nine such.
# Tuned for any of the later processors it stores. No instruction is used that
# other processors lack.
_TUNING = select({
    "//tools:optimized_for_x86_64": ["-mtune=skylake", "-O3"],
    "//conditions:default": [],
})

def tuned_cc_library(copts = [], **kwargs):
    """cc_library for what a call's way goes through."""
    cc_library(copts = copts + _TUNING, **kwargs)

def cc23_library(copts = [], **kwargs):
    """cc_library of what needs a later standard: no precompiled header fits it."""
    native.cc_library(copts = copts + ["-std=c++2b"], **kwargs)
