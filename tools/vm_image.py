"""What a VM of tools/vm boots from: Debian's kernel and an initramfs.

The kernel package is downloaded (67 MiB) and never installed; it, the kernel and
the initramfs stay in a cache directory of the user. Whichever kernel is there is
used, so that this works without a network from then on; a newer one comes after
`rm -r` of the directory. Several processes may prepare at once: one does it, the
others wait.
"""

import contextlib
import fcntl
import glob
import hashlib
import lzma
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

TOOLS = os.path.dirname(os.path.realpath(__file__))
GUEST = os.path.join(TOOLS, "vm_guest")
PACKAGES = os.path.join(TOOLS, "packages_vm.txt")

# Depends on the newest kernel package. Not the cloud kernel: that has neither
# soft-RoCE nor 9p.
KERNEL_METAPACKAGE = "linux-image-amd64"

# Of the kernel package: all that the initramfs may take modules from.
UNPACKED = (
    "./boot/vmlinuz-*",
    "./lib/modules/*/modules.*",
    "./lib/modules/*/kernel/crypto",
    "./lib/modules/*/kernel/lib",
    "./lib/modules/*/kernel/fs",
    "./lib/modules/*/kernel/net",
    "./lib/modules/*/kernel/arch/x86/crypto",
    "./lib/modules/*/kernel/drivers/char",
    "./lib/modules/*/kernel/drivers/infiniband",
    "./lib/modules/*/kernel/drivers/net",
    "./lib/modules/*/kernel/drivers/virtio",
)

# An image (70 MB) that nothing used for so long goes when another is made. It can be
# made again from the package.
STALE_SECONDS = 24 * 3600


class Unavailable(Exception):
    """No VM can run here; the message says why and what to do."""


class Image:
    """Files to boot from. `directory` may keep notes on them."""

    def __init__(self, directory):
        self.directory = directory
        self.kernel = os.path.join(directory, "vmlinux")
        self.initramfs = os.path.join(directory, "initramfs")

    def is_complete(self):
        return os.path.exists(self.kernel) and os.path.exists(self.initramfs)


def say(text):
    print("vm: " + text, file=sys.stderr, flush=True)


def run(command, **options):
    """Runs a command to its end; its output. Raises Unavailable where it fails."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, **options
    )
    if result.returncode != 0:
        error = result.stderr.decode(errors="replace").strip()
        raise Unavailable("%s failed: %s" % (" ".join(command[:3]), error or result.returncode))
    return result.stdout


# ---- Packages ----


def wanted_packages():
    with open(PACKAGES, encoding="utf-8") as file:
        lines = (line.partition("#")[0].strip() for line in file)
        return [line for line in lines if line]


def missing_packages():
    wanted = wanted_packages()
    try:
        listing = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Package} ${Status}\n", "--"] + wanted,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            encoding="utf-8",
        ).stdout
    except FileNotFoundError:
        raise Unavailable("no dpkg here: tools/vm takes Debian 12 packages.") from None
    installed = {
        line.split()[0] for line in listing.splitlines() if line.endswith(" install ok installed")
    }
    return [package for package in wanted if package not in installed]


def check_packages():
    missing = missing_packages()
    if missing:
        raise Unavailable(
            "packages are missing: %s. Run tools/vm --prepare, or apt-get install "
            "--no-install-recommends with them." % " ".join(missing)
        )


def install_packages():
    if not missing_packages():
        return
    # As root in a session of its own, to which a Ctrl-C does not go: dpkg is not to
    # be interrupted. Else in this one, where sudo can ask for a password.
    installing = subprocess.Popen(
        [os.path.join(TOOLS, "install_packages"), PACKAGES],
        stdout=sys.stderr,
        start_new_session=os.getuid() == 0,
    )
    try:
        status = installing.wait()
    except BaseException:
        say("waiting for apt to finish what it has begun")
        installing.wait()
        raise
    if status != 0:
        raise Unavailable("packages are missing (see above).")


def check_machine():
    """The guest runs the host's programs, so it has to be of the host's kind."""
    machine = os.uname().machine
    if machine != "x86_64":
        raise Unavailable("this machine is %s, and the VM is x86-64 only." % machine)


# ---- The cache directory ----


def is_own_directory(path):
    """Nobody else may put a kernel there that this user would boot."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError:
        return False
    private = status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and private and os.access(path, os.W_OK)


def cache_directory():
    """Where things are kept.

    The home directory is the user's, whatever HOME says: tests run without HOME,
    and are to find what was prepared for them.
    """
    candidates = []
    if os.environ.get("XDG_CACHE_HOME"):
        candidates.append(os.path.join(os.environ["XDG_CACHE_HOME"], "verbena/vm"))
    with contextlib.suppress(KeyError):
        home = pwd.getpwuid(os.getuid()).pw_dir
        candidates.append(os.path.join(home, ".cache/verbena/vm"))
    temporary = os.environ.get("TMPDIR", "/tmp")
    candidates.append(os.path.join(temporary, "verbena_vm.%d" % os.getuid()))
    for path in candidates:
        if is_own_directory(path):
            return path
    raise Unavailable(
        "no directory for the kernel: %s cannot be written to. Set XDG_CACHE_HOME to "
        "one that can." % " or ".join(candidates)
    )


@contextlib.contextmanager
def locked(directory):
    with open(os.path.join(directory, "lock"), "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another tools/vm that prepares the same")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ---- The kernel package ----


def newest_kernel_package():
    """The name of the package that the distribution's default depends on, or None."""
    listing = subprocess.run(
        ["apt-cache", "depends", KERNEL_METAPACKAGE],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        encoding="utf-8",
    ).stdout
    match = re.search(r"Depends: (linux-image-\S+)", listing)
    return match.group(1) if match else None


def update_package_lists():
    command = ["apt-get", "update", "--quiet"]
    if os.getuid() != 0:
        if not shutil.which("sudo"):
            raise Unavailable("apt knows no %s: run apt-get update as root." % KERNEL_METAPACKAGE)
        command.insert(0, "sudo")
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
        raise Unavailable("apt-get update failed (see above): is a package mirror reachable?")


def download(package, directory):
    say("downloading %s (70 MB, once)" % package)
    # Root may write where apt's own user may not.
    run(["apt-get", "download", "-o", "APT::Sandbox::User=root", package], cwd=directory)


def download_kernel(directory):
    with tempfile.TemporaryDirectory(dir=directory, prefix="download.") as scratch:
        package = newest_kernel_package()
        try:
            if package is None:
                raise Unavailable("")
            download(package, scratch)
        except Unavailable:  # no lists yet, or stale ones
            update_package_lists()
            package = newest_kernel_package()
            if package is None:
                raise Unavailable("apt knows no %s." % KERNEL_METAPACKAGE) from None
            download(package, scratch)
        for file in glob.glob(os.path.join(scratch, "*.deb")):
            os.rename(file, os.path.join(directory, os.path.basename(file)))


def cached_kernel(directory):
    packages = glob.glob(os.path.join(directory, "linux-image-*.deb"))
    return max(packages, key=os.path.getmtime) if packages else None


# ---- The image ----


def image_of(directory, package):
    """The image of a package and of these scripts as they are, made or not."""
    digest = hashlib.sha256()
    sources = sorted(glob.glob(os.path.join(GUEST, "*"))) + [os.path.realpath(__file__)]
    for path in sources + [shutil.which("busybox") or ""]:
        if path:
            with open(path, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
    kernel = os.path.basename(package).split("_")[0].replace("linux-image-", "")
    return Image(os.path.join(directory, "%s-%s" % (kernel, digest.hexdigest()[:16])))


def extract_vmlinux(vmlinuz, path):
    """Takes the kernel out of its boot loader's format: that saves 2 s of boot."""
    with open(vmlinuz, "rb") as file:
        data = file.read()
    start = data.find(b"\xfd7zXZ\0")
    try:
        kernel = lzma.LZMADecompressor().decompress(data[start:]) if start >= 0 else b""
    except lzma.LZMAError:
        kernel = b""
    # Compressed some other way, it boots as it is.
    with open(path, "wb") as file:
        file.write(kernel if kernel.startswith(b"\x7fELF") else data)


def ordered_modules(root, version):
    """The files of the modules to load, each after those that it depends on."""
    with open(os.path.join(GUEST, "modules.txt"), encoding="utf-8") as file:
        names = [line.partition("#")[0].strip() for line in file]
    paths = []
    for name in filter(None, names):
        listing = run(
            ["modprobe", "--show-depends", "--set-version", version, "-d", root, name],
            encoding="utf-8",
            env=dict(os.environ, PATH=program_path()),
        )
        for line in listing.splitlines():
            kind, _, path = line.strip().partition(" ")
            if kind == "insmod" and path not in paths:
                paths.append(path.strip())
    return paths


def program_path():
    """An ordinary user's PATH lacks where depmod and modprobe are."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def make_initramfs(tree, paths, initramfs):
    for name in ("bin", "modules", "proc", "sys", "dev"):
        os.makedirs(os.path.join(tree, name))
    shutil.copy(shutil.which("busybox", path=program_path()), os.path.join(tree, "bin/busybox"))
    for name in ("init", "session"):
        shutil.copy(os.path.join(GUEST, name), tree)
        os.chmod(os.path.join(tree, name), 0o755)
    with open(os.path.join(tree, "modules/order"), "w", encoding="utf-8") as order:
        for path in paths:
            shutil.copy(path, os.path.join(tree, "modules"))
            order.write(os.path.basename(path) + "\n")
    names = []
    for directory, _, files in os.walk(tree):
        names += [os.path.relpath(os.path.join(directory, name), tree) for name in [""] + files]
    archive = subprocess.run(
        ["cpio", "--create", "--format=newc", "--quiet", "--owner=0:0"],
        input="\n".join(names).encode(),
        stdout=subprocess.PIPE,
        cwd=tree,
        check=True,
    ).stdout
    with open(initramfs, "wb") as file:
        file.write(archive)


def build(package, image):
    say("making a VM's image of %s" % os.path.basename(package))
    with tempfile.TemporaryDirectory(dir=os.path.dirname(image.directory), prefix="build.") as tmp:
        root, tree, made = (os.path.join(tmp, name) for name in ("root", "tree", "image"))
        for path in (root, tree, made):
            os.mkdir(path)
        archive = os.path.join(tmp, "package.tar")
        with open(archive, "wb") as file:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=file, check=True)
        # A pattern that matches nothing is not an error: what lacks, modprobe tells.
        subprocess.run(
            ["tar", "-x", "-f", archive, "-C", root, "--no-same-owner", "--wildcards"]
            + list(UNPACKED),
            stderr=subprocess.DEVNULL,
            check=False,
        )
        os.unlink(archive)
        version = os.listdir(os.path.join(root, "lib/modules"))[0]
        run(["depmod", "-b", root, version], env=dict(os.environ, PATH=program_path()))
        result = Image(made)
        extract_vmlinux(os.path.join(root, "boot/vmlinuz-" + version), result.kernel)
        make_initramfs(tree, ordered_modules(root, version), result.initramfs)
        shutil.rmtree(image.directory, ignore_errors=True)
        os.rename(made, image.directory)


def remove_stale(directory):
    """REQUIRES: the lock. What a killed process left is stale, too."""
    for name in ("build.*", "download.*"):
        for path in glob.glob(os.path.join(directory, name)):
            shutil.rmtree(path, ignore_errors=True)
    for path in glob.glob(os.path.join(directory, "*/initramfs")):
        with contextlib.suppress(OSError):
            if time.time() - os.path.getmtime(path) > STALE_SECONDS:
                shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def prepared_image():
    """The image, where everything is there. Raises Unavailable."""
    check_machine()
    check_packages()
    directory = cache_directory()
    package = cached_kernel(directory)
    if package is None:
        raise Unavailable("no kernel was downloaded yet: run tools/vm --prepare.")
    image = image_of(directory, package)
    if not image.is_complete():
        with locked(directory):
            if not image.is_complete():
                remove_stale(directory)
                build(package, image)
    os.utime(image.initramfs)
    return image


def prepare():
    """Installs, downloads and makes what is missing. Raises Unavailable."""
    check_machine()
    install_packages()
    directory = cache_directory()
    with locked(directory):
        if cached_kernel(directory) is None:
            download_kernel(directory)
    return prepared_image()
