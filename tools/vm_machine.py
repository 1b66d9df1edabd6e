"""One VM of tools/vm: a QEMU process and its channels.

All channels are socket pairs that QEMU inherits, so there is no file to clean up,
and nothing listens anywhere. The guest's end of them is tools/vm_guest/session.
"""

import base64
import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys

QEMU = "qemu-system-x86_64"

# Of the plain `max`, what emulation does slowly is left out. The kernel would choose
# it for checksums and copies, and soft-RoCE would be half as fast; and smap it would
# switch off and on around each copy from a program, 5% of a small message.
ACCELERATORS = {
    "kvm": ["-accel", "kvm", "-cpu", "host"],
    "tcg": ["-accel", "tcg,thread=multi", "-cpu", "max,-pclmulqdq,-erms,-fsrm,-smap"],
}

# The kernel tries out its timer at boot, and gives up where a busy host does not run
# the machine meanwhile: no_timer_check.
KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nowatchdog "
    "tsc=reliable clocksource=tsc no_timer_check random.trust_cpu=on"
)

# In the order of the guest's serial ports.
PORTS = ("control", "output", "error")

# Of the console, for the account of a failure.
CONSOLE_BYTES = 64 << 10
COMPLAINT_LINES = 80  # an oops and the panic after it

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def without_ticks(cpus):
    """Kernel arguments with which a processor that runs a single thread has no periodic
    timer interrupts. Emulated, each takes as long as a small message there and back,
    and there are 250 a second. The first processor keeps the time, and so its own."""
    return "nohz_full=1-{0} rcu_nocbs=1-{0}".format(cpus - 1) if cpus > 1 else ""


def before_qemu():
    """In the child: ends with this process, however that ends, and without a core."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Machine:
    """A VM that starts at once.

    `channels` are sockets by name: "output" and "error" carry the command's,
    "control" lines as the guest's session describes them, "console" what the
    kernel and QEMU say. All of them end when QEMU does.

    `settings` becomes the environment of the guest's scripts; values without
    spaces. `wire` is one end of a pair of datagram sockets, or None, and `mac` its
    address; the caller closes it. `results` is a directory to share, or None.
    """

    def __init__(self, name, image, accelerator, settings, cpus=2, memory_mib=2048,
                 wire=None, mac=None, results=None):
        self.name = name
        self.channels = {}
        self.console = b""
        self.process = None
        far_ends = {}
        try:
            for channel in PORTS + ("console",):
                self.channels[channel], far_ends[channel] = socket.socketpair()
            command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
            command += ACCELERATORS[accelerator]
            command += ["-smp", str(cpus), "-m", str(memory_mib)]
            arguments = [KERNEL_ARGUMENTS, without_ticks(cpus)]
            arguments += ["%s=%s" % item for item in settings.items()]
            command += ["-kernel", image.kernel, "-initrd", image.initramfs]
            command += ["-append", " ".join(arguments)]
            command += share("host", "/", ",readonly=on")
            if results is not None:
                command += share("results", results, "")
            command += ["-device", "virtio-serial-pci"]
            for channel in PORTS:
                command += socket_chardev(channel, far_ends[channel])
                command += ["-device", "virtserialport,chardev=%s,name=%s" % (channel, channel)]
            command += socket_chardev("console", far_ends["console"])
            command += ["-serial", "chardev:console"]
            inherited = [end.fileno() for end in far_ends.values()]
            if wire is not None:
                command += ["-netdev", "dgram,id=wire,local.type=fd,local.str=%d" % wire.fileno()]
                command += ["-device", "virtio-net-pci,netdev=wire,host_mtu=9000,mac=" + mac]
                inherited.append(wire.fileno())
            # In a session of its own, out of reach of a terminal's Ctrl-C.
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=far_ends["console"],
                stderr=far_ends["console"],
                pass_fds=inherited,
                start_new_session=True,
                preexec_fn=before_qemu,
            )
        except BaseException:
            self.end()
            raise
        finally:
            for end in far_ends.values():
                end.close()

    def run_script(self, script):
        """Has the guest, which said "ready", run a script of sh."""
        self.keep_timers_punctual()
        self.send(base64.b64encode(script.encode(errors="surrogateescape")))

    def keep_timers_punctual(self):
        """Puts QEMU's first thread, which fires the processors' timers, before those that
        are the processors, where the caller has all of them run in real time (chrt --rr).
        Among equals it would wait behind processors that never sleep, for a tenth of a
        second each time: whoever polls would be spared the timer's interrupts."""
        policy = os.sched_getscheduler(self.process.pid)
        if policy not in (os.SCHED_RR, os.SCHED_FIFO):
            return
        priority = os.sched_getparam(self.process.pid).sched_priority + 1
        try:
            os.sched_setscheduler(self.process.pid, policy, os.sched_param(priority))
        except OSError as error:  # no higher one is allowed, or there is none
            print("vm: its timers may come late: priority %d: %s" % (priority, error.strerror),
                  file=sys.stderr)

    def ask_to_end(self):
        """Has the guest send the command SIGTERM, and SIGKILL later."""
        self.send(b"stop")

    def send(self, line):
        try:
            self.channels["control"].sendall(line + b"\n")
        except OSError:
            pass  # it has ended, and the end of its channels tells

    def note_console(self, data):
        self.console = (self.console + data)[-CONSOLE_BYTES:]

    def end(self):
        """Ends QEMU, at once. What is in the channels can be read still."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self):
        self.end()
        for channel in self.channels.values():
            channel.close()

    def complaint(self):
        """Why it ended, as far as its console tells: a line, then the console's end.

        REQUIRES: its channels have ended.
        """
        text = self.console.decode(errors="replace").replace("\r", "")
        lines = [line for line in text.splitlines() if line.strip()]
        reason = "QEMU ended with status %d" % self.process.wait()
        for line in lines:
            _, panic, cause = line.partition("Kernel panic - not syncing: ")
            if panic:
                reason = "the guest's kernel panicked (%s)" % cause
            elif line.startswith("verbena: "):
                reason = "the guest could not start: " + line[len("verbena: "):]
        return reason, lines[-COMPLAINT_LINES:]


def share(tag, path, options):
    path = path.replace(",", ",,")  # QEMU's quoting
    # A guest's device numbers are few: those of the host's file systems are mapped.
    return [
        "-fsdev",
        "local,id=%s,path=%s,security_model=none,multidevs=remap%s" % (tag, path, options),
        "-device",
        "virtio-9p-pci,fsdev=%s,mount_tag=%s" % (tag, tag),
    ]


def socket_chardev(name, end):
    return ["-chardev", "socket,id=%s,fd=%d" % (name, end.fileno())]


def kvm_is_offered():
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and shutil.which(QEMU) is not None
