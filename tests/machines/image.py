"""The machines' base image: Debian from its packages, with the guest files of this folder, bootable by its own GRUB.

Two layers are kept, each under the hash of all that goes into it: the packages (a folder) and the image (a disk). A new
guest file so costs a few seconds, a new package all of it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.machines import place
from tests.machines.place import HERE, FleetError

GUEST = HERE / "guest"
NVML = HERE / "nvml"
RECORDING = HERE.parent / "data/recordings/h200-x8/nvml.json"
SUITE = "bookworm"
KERNEL_AND_PROGRAMS = [GUEST / each for each in ("packages.txt", "toolchain.txt", "before", "prepare.sh", "fakepci")]
DISK_MIB = 4096
DATA_UUID = "5ad0f1ee-0000-4000-8000-00000000da7a"
SWAP_UUID = "5ad0f1ee-0000-4000-8000-000000005a40"
TOOLS = ("mmdebstrap", "mkfs.ext4", "mkswap", "sfdisk", "iasl", "make", "gcc", "qemu-img", "qemu-system-x86_64")


@dataclass(frozen=True)
class Image:
    """A folder with the disks from which machines start, and the keys to log in to them."""

    folder: Path

    @property
    def login_key(self) -> Path:
        return self.folder / "login"

    @property
    def host_key(self) -> str:
        """The public key that every machine shows: "ssh-ed25519 AAAA…"."""
        return " ".join((self.folder / "host.pub").read_text().split()[:2])

    def hold(self) -> int:
        """Keep the image from being removed for as long as the returned descriptor is open in any process."""
        return place.open_lock(self.folder / "in-use", shared=True)


def ensure() -> Image:
    """The image for what is in this folder now: built if it is not there. Waits while another process builds it."""
    found = _layer("image", _everything())
    if not found.exists():
        with place.locked(place.folder() / "building"):
            if not found.exists():
                _check_tools()
                _remove_halves()
                _made(found, lambda new: _build(_packages(), new))
                _remove_old("image", found)
    return Image(found)


def _packages() -> Path:
    found = _layer("packages", _programs())
    if not found.exists():
        _made(found, _install)
        _remove_old("packages", found)
    return found


def _layer(kind: str, key: str) -> Path:
    return place.folder() / f"{kind}-{key}"


def _programs() -> str:
    return place.digest(Path(__file__), *KERNEL_AND_PROGRAMS)


def _everything() -> str:
    stand_in = [NVML, RECORDING] if (NVML / "install.sh").exists() else []
    return place.digest(_programs(), place.OP_PASSWORD, GUEST, *stand_in)


def _check_tools() -> None:
    if os.geteuid():
        raise FleetError("building the machines' image needs root (it unpacks Debian packages): run as root")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if missing := [tool for tool in TOOLS if not shutil.which(tool, path=path)]:
        packages = " ".join((HERE / "packages.txt").read_text().split())
        raise FleetError(f"{', '.join(missing)} missing: apt-get install --no-install-recommends {packages}")


def _made(target: Path, fill) -> None:
    """Fill a folder and give it its name only when it is whole."""
    with tempfile.TemporaryDirectory(prefix="half-", dir=target.parent) as half:
        new = Path(half) / "new"
        new.mkdir(mode=0o755)
        fill(new)
        new.rename(target)


def _remove_halves() -> None:
    """What a killed build left. Only the builder, who holds the lock, may call this."""
    for half in place.folder().glob("half-*"):
        run("rm", "-rf", "--one-file-system", half)


def _remove_old(kind: str, newest: Path) -> None:
    for old in place.folder().glob(f"{kind}-*"):
        unused = old != newest and place.open_lock(old / "in-use", wait=False)
        if unused:
            shutil.rmtree(old)
            os.close(unused)


def run(*command, **options) -> str:
    """Run a tool; its output. Raises FleetError with the end of what it said."""
    words = [str(word) for word in command]
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, **options)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-25:])
        raise FleetError(f"`{' '.join(words[:6])} …` failed ({done.returncode}):\n{said}")
    return done.stdout


# The layer of packages


def sources() -> list[str]:
    """APT lines for the machines, from the mirrors that this machine itself uses for Debian."""
    archive = _mirror("debian") or "http://deb.debian.org/debian"
    security = _mirror("debian-security") or "http://deb.debian.org/debian-security"
    return [
        f"deb {archive} {SUITE} main",
        f"deb {archive} {SUITE}-updates main",
        f"deb {security} {SUITE}-security main",
    ]


def _mirror(ending: str) -> str | None:
    files = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(file.read_text() for file in files if file.suffix in (".list", ".sources") and file.exists())
    found = re.search(rf"^(?:URIs:|deb(?: \[[^]]*\])?)\s+(\S+/{ending})/?(?=\s|$)", text, re.MULTILINE)
    return found and found[1]


def _words(file: Path) -> list[str]:
    return file.read_text().split()


def _install(root: Path) -> None:
    wanted = _words(GUEST / "packages.txt") + _words(GUEST / "toolchain.txt")
    run(
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        "--dpkgopt=force-unsafe-io",
        f"--include={','.join(wanted)}",
        f'--setup-hook=cp -r {GUEST}/before/. "$1"',
        f'--customize-hook=sh {GUEST}/prepare.sh {GUEST} "$1"',
        SUITE,
        root,
        "-",
        input="\n".join(sources()) + "\n",
    )


# The layer of the image


def _build(packages: Path, new: Path) -> None:
    root = new / "root"
    run("cp", "-a", "--reflink=auto", packages, root)
    for key in ("login", "host"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fleet", "-f", new / key)
    _add_guest_files(new, root)
    _add_stand_in(root)
    _write_disk(root, new / "base.raw")
    _write_data(new)
    run("iasl", "-p", new / "cpus", GUEST / "cpus.asl")
    shutil.rmtree(root)


def _add_guest_files(new: Path, root: Path) -> None:
    run("cp", "-r", "--no-preserve=ownership", f"{GUEST}/root/.", root)
    for file in (GUEST / "masked.txt", GUEST / "finish.sh", new / "login.pub", new / "host", new / "host.pub"):
        shutil.copy(file, root / "tmp")
    (root / "tmp/passwords").write_text(f"op:{place.OP_PASSWORD}\n")
    run("chroot", root, "sh", "/tmp/finish.sh")


def _add_stand_in(root: Path) -> None:
    """The library that plays the GPU driver."""
    if (NVML / "install.sh").exists():
        with tempfile.TemporaryDirectory() as built:
            run("make", "-s", "-C", NVML, f"OUT={built}", f"PYTHON={sys.executable}")
            run("sh", NVML / "install.sh", built, root)


def _write_disk(root: Path, disk: Path) -> None:
    """Partition table, file system and boot loader, all without loop devices, which containers seldom have."""
    with disk.open("wb") as empty:
        empty.truncate(DISK_MIB << 20)
    run("sfdisk", "-q", disk, input="label: dos\nstart=2048, type=83, bootable\n")
    start = "offset=1048576,lazy_itable_init=1,lazy_journal_init=1"
    run("mkfs.ext4", "-q", "-F", "-L", "fleetroot", "-E", start, "-d", root, disk, f"{(DISK_MIB - 1) << 10}k")
    grub = root / "boot/grub/i386-pc"
    with disk.open("r+b") as written:
        written.write((grub / "boot.img").read_bytes()[:440])
        written.seek(512)
        written.write((grub / "core.img").read_bytes())


def _write_data(new: Path) -> None:
    for disk, mib in (("data", 1024), ("scratch", 1024), ("swap", 512)):
        with (new / f"{disk}.raw").open("wb") as empty:
            empty.truncate(mib << 20)
    run("mkfs.ext4", "-q", "-F", "-L", "data", "-U", DATA_UUID, new / "data.raw")
    run("mkswap", "-q", "-U", SWAP_UUID, new / "swap.raw")
