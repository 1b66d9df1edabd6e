"""cc_library for what a call's way goes through."""

# GCC's generic tuning clears objects of more than a hundred bytes by `rep stos`,
# which takes several times as long as storing to them; a call has nine such.
# Tuned for any of the later processors it stores. No instruction is used that
# other processors lack.
_TUNING = select({
    "//tools:optimized_for_x86_64": ["-mtune=skylake", "-O3"],
    "//conditions:default": [],
})

def cc_library(copts = [], **kwargs):
    native.cc_library(copts = copts + _TUNING, **kwargs)
