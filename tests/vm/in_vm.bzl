"""Test programs, run in a VM that has soft-RoCE."""

VM_TAGS = [
    # A VM takes all processors there are, and time limits count.
    "exclusive",
    # Whether a VM can run is no input: a skip is not to be remembered.
    "external",
    # What runs inside is built without.
    "no-asan",
    "no-tsan",
    "no-ubsan",
]

# Linux 6.1's soft-RoCE at times stops a connection for good once packets were lost
# or came out of order: about 1 of 30 of rdma-core's own ibv_rc_pingpong, with 100
# messages each way at 5 % loss. A call then ends at its deadline, and a test fails
# with it. At times it fails a request, and with it the QP, without a status (WARNING
# at rxe_comp.c:756): the call is UNAVAILABLE in 9 of 180 runs of
# PollersTest.SeveralOnBothSides. So what fails is tried again, up to twice; Bazel's
# log says FLAKY.
SOFT_ROCE_STALLS = True

# A busy host may take many times as long as a quiet one, which takes minutes.
_SECONDS = 3000

def in_vm_test(name, programs, devices = 2):
    """All of `programs` in one VM, which costs one boot; see in_vm.sh."""
    native.sh_test(
        name = name,
        timeout = "eternal",
        srcs = ["in_vm.sh"],
        args = [str(_SECONDS), str(devices)] +
               ["$(location %s)" % program for program in programs],
        data = ["//tools:vm_files"] + programs,
        # One device by itself loses nothing.
        flaky = SOFT_ROCE_STALLS and devices > 1,
        tags = VM_TAGS,
    )
