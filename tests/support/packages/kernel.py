"""Kernel modules for the machines' kernel, built in a folder with Debian's compiler and headers for it.

They are unpacked, not installed: 20 s.
"""

import shutil
import tempfile
from pathlib import Path

from tests.machines import image, place
from tests.machines.place import FleetError
from tests.support.packages import kept
from tests.support.packages.data import HERE

MODULES = HERE / "modules"
FLAVOURS = {"open": "-DOPEN", "proprietary": ""}
PROGRAMS = "bash,coreutils,dash,findutils,gawk,gcc,grep,libc6-dev,make,perl-base,sed"


def of_image() -> str:
    """The kernel of the newest layer of packages from which machines are made; empty before there is one."""
    found = sorted(place.folder().glob("packages-*/lib/modules/*"), key=lambda each: each.stat().st_mtime)
    return found[-1].name if found else ""


def modules(kernel: str) -> Path:
    """A folder FLAVOUR/KERNEL/*.ko. Raises FleetError where Debian no longer has headers for this kernel."""
    key = f"{kernel}-{place.digest(MODULES, Path(__file__))}"
    return kept.folder("modules", key, lambda new: _build(kernel, new))


def _build(kernel: str, new: Path) -> None:
    with tempfile.TemporaryDirectory(dir=new.parent) as root:
        _unpack(kernel, Path(root))
        for flavour, flag in FLAVOURS.items():
            _compile(kernel, Path(root), flavour, flag)
            (new / flavour).mkdir(parents=True)
            shutil.copytree(Path(root) / "tmp" / flavour, new / flavour / kernel, ignore=_all_but_modules)


def _all_but_modules(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".ko")]


def _compile(kernel: str, root: Path, flavour: str, flag: str) -> None:
    source = root / "tmp" / flavour
    shutil.copytree(MODULES, source)
    options = (f"M=/tmp/{flavour}", f"KCFLAGS={flag}")
    _inside(root, "make", "-s", "-C", f"/lib/modules/{kernel}/build", *options, "modules")
    for file in source.glob("*.ko"):
        _inside(root, "strip", "--strip-debug", f"/tmp/{flavour}/{file.name}")


def _unpack(kernel: str, root: Path) -> None:
    wanted = f"--include={PROGRAMS},linux-headers-{kernel}"
    sources = "\n".join(image.sources()) + "\n"
    try:
        image.run("mmdebstrap", "--mode=root", "--variant=extract", wanted, image.SUITE, root, "-", input=sources)
    except FleetError as error:
        raise FleetError(
            f"no headers for {kernel}, from which the machines' image was made: remove {place.folder()}/packages-* to "
            f"make it of today's packages\n{error}"
        ) from None
    (root / "usr/bin/awk").symlink_to("gawk")  # an alternative: made when a package is installed, not when unpacked


def _inside(root: Path, *command: str) -> None:
    image.run("chroot", root, "env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command)
