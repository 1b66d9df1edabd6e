"""The conformance suite as tests of one provider.

    conformance_suite(
        name = "software",
        provider = ":software_provider_under_test",
    )

makes a test for each file of the suite, named BEHAVIOUR_NAME ("send_software"),
and a test_suite NAME of them all. `provider` is a library that defines
rdma::conformance::TheProviderUnderTest(); a provider that needs set-up outside of
this process says so with `tags`.

    conformance_binary(name = "rxe_suite", provider = ":rxe_provider_under_test")

makes one test NAME of all files, to be carried to a machine that has the device.
"""

load("//tests/prelude:cc_test.bzl", "cc_test", "cc_test_library")

# File stems. One process a file, so that a crash costs one.
_BEHAVIOURS = [
    "atomic",
    "completion_channel",
    "completion_queue",
    "connection",
    "connection_teardown",
    "flush",
    "listener",
    "memory_region",
    "memory_window",
    "memory_window_bind",
    "object_lifetime",
    "one_sided",
    "ordering",
    "peer_death",
    "queue_pair_state",
    "random_traffic",
    "receive_queue",
    "remote_access",
    "request_handover",
    "rnr",
    "send",
    "send_queue",
    "shared_receive_queue",
    "sleeping_owner",
    "threads",
    "type_1_window",
]

# The others are one thread, in which no race is to be found.
_BEHAVIOURS_WITH_THREADS = ["threads"]

def conformance_libraries():
    """The suite's files, compiled once for all providers."""
    for behaviour in _BEHAVIOURS:
        cc_test_library(
            name = behaviour + "_test",
            srcs = [behaviour + "_test.cc"],
            alwayslink = True,
            linkstatic = True,
            deps = [
                ":fixture",
                ":peer_process",
                "@com_google_googletest//:gtest",
                "@com_google_absl//absl/time",
                "@com_google_absl//absl/types:span",
                "@rdma_core//:ibverbs",
                "//rdma_transport/provider",
            ],
        )

def conformance_suite(name, provider, tags = []):
    """The tests of `provider`; see above."""
    for behaviour in _BEHAVIOURS:
        threads = behaviour in _BEHAVIOURS_WITH_THREADS
        cc_test(
            name = behaviour + "_" + name,
            size = "small",
            tags = tags + ["plain"] + ([] if threads else ["no-tsan"]),
            deps = [
                ":" + behaviour + "_test",
                provider,
                "@com_google_googletest//:gtest_main",
            ],
        )
    native.test_suite(
        name = name,
        tests = [":" + behaviour + "_" + name for behaviour in _BEHAVIOURS],
    )

def conformance_binary(name, provider, tags = [], **kwargs):
    """All tests of `provider` in one program; see above."""
    cc_test(
        name = name,
        linkstatic = True,
        tags = tags,
        deps = [":" + behaviour + "_test" for behaviour in _BEHAVIOURS] + [
            provider,
            "@com_google_googletest//:gtest_main",
        ],
        **kwargs
    )
