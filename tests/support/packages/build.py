"""python -m tests.support.packages.build OUT [--kernel VERSION] [--without-modules]: repositories of substitutes for NVIDIA's packages.

OUT/key.asc               signs all of them
OUT/apt/STATE/            deb [signed-by=…] URL/apt/STATE /     STATE: first, second, bad, lagging (see data.py)
OUT/apt/debian/           Debian's own driver; apt/distribution/: what the packages need of Debian
OUT/dnf/STATE/            baseurl=URL/dnf/STATE; next to it rpmfusion/, elrepo/ and distribution/
OUT/machine/              bare.sh, which makes a machine of tests/machines bare, and its pretended NVSwitches
"""

import argparse
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.machines import image, place
from tests.machines.place import FleetError
from tests.support.packages import deb, kept, kernel, keys, rpm
from tests.support.packages.data import HERE, NVIDIA, STATES, Package, packages
from tests.support.packages.keys import Key

MANAGERS = ("apt", "dnf")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.packages.build", description="Repositories of stand-ins."
    )
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("--kernel", help="the machines' kernel (default: that of the newest image of tests/machines)")
    parser.add_argument("--without-modules", action="store_true", help="the packages bring no kernel modules")
    told = parser.parse_args(words)
    try:
        build(told.out, "" if told.without_modules else told.kernel or kernel.of_image())
    except FleetError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    return 0


def ready(for_kernel: str = "", managers: tuple[str, ...] = MANAGERS) -> Path:
    """As build, in a folder that is shared, and kept for as long as nothing changes of which it is made."""
    made_of = place.digest(HERE, image.NVML, HERE.parent / "cuda", for_kernel, *managers)
    return kept.folder("repositories", made_of, lambda new: build(new, for_kernel, managers))


def build(out: Path, for_kernel: str = "", managers: tuple[str, ...] = MANAGERS) -> None:
    """`for_kernel`: that of the machines, for which modules are built; empty: the packages bring no modules."""
    if out.exists() and any(out.iterdir()):
        raise FleetError(f"{out} is not empty: name a new folder")
    if "dnf" in managers and (missing := rpm.missing()):
        wanted = " ".join((HERE / "packages.txt").read_text().split())
        raise FleetError(f"{missing} missing: apt-get install --no-install-recommends {wanted}")
    out.mkdir(parents=True, exist_ok=True)
    with keys.new() as key, tempfile.TemporaryDirectory(dir=out) as pool:
        if "apt" in managers:
            _apt(out / "apt", Path(pool), key, for_kernel)
        if "dnf" in managers:
            _dnf(out / "dnf", Path(pool), key)
        key.export(out / "key.asc")
    if for_kernel:
        shutil.copytree(HERE / "machine", out / "machine")
        shutil.copy(kernel.modules(for_kernel) / f"open/{for_kernel}/fakenvswitch.ko", out / "machine")


def _apt(out: Path, pool: Path, key: Key, for_kernel: str) -> None:
    modules = kernel.modules(for_kernel) if for_kernel else None
    all_of_them = packages("debian-12", for_kernel)
    with ThreadPoolExecutor(2) as workers:
        made = dict(
            zip(all_of_them, workers.map(lambda each: deb.build(each, pool, modules), all_of_them), strict=True)
        )
    for name, chosen in _repositories(all_of_them).items():
        origin = "NVIDIA" if name in STATES else "Debian"
        deb.repository(out / name, [made[each] for each in chosen], key, origin)


def _dnf(out: Path, pool: Path, key: Key) -> None:
    made = rpm.build(packages("rhel-9"), pool, key)
    for name, chosen in _repositories(list(made)).items():
        rpm.repository(out / name, {each: made[each] for each in chosen}, key)


def _repositories(all_of_them: list[Package]) -> dict[str, list[Package]]:
    """Folder → what is in it: NVIDIA's in each of its states, and those of others."""
    others = sorted({each.repository for each in all_of_them} - {NVIDIA})
    found = {state: [each for each in all_of_them if each.stands_in(state)] for state in STATES}
    return found | {name: [each for each in all_of_them if each.repository == name] for name in others}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
