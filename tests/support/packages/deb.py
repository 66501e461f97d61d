"""Packages for apt, and a signed flat repository of them."""

import gzip
import hashlib
import os
import tempfile
from email.utils import formatdate
from pathlib import Path

from tests.machines.image import run
from tests.support.packages import payload
from tests.support.packages.data import Package
from tests.support.packages.keys import Key

FAIL = "/etc/nodetune-stand-in/fail"
"""On a machine: names of packages, one a line, whose installation is to fail."""
RELATIONS = ("depends", "recommends", "provides", "conflicts", "replaces")
SCRIPT = """#!/bin/sh
set -e
[ "$1" = {when} ] || exit 0
"""
ASKED_TO_FAIL = """if grep -qsx '{name}' {file}; then
    echo "{name}: installation fails, as {file} asks" >&2
    exit 1
fi
"""


def build(package: Package, folder: Path, modules: Path | None = None) -> Path:
    """`modules`: kernel modules as kernel.modules() gives them; without it the package holds none."""
    version = package.version.partition(":")[2] or package.version
    made = folder / f"{package.name}_{version}_{package.architecture}.deb"
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        _fill(package, Path(root), modules)
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, made)
    return made


def _fill(package: Package, root: Path, modules: Path | None) -> None:
    for target, source in package.files.items():
        _write(root, target, payload.content(package, source))
    for target in package.empty:
        _write(root, target, b"")
    for target, to in package.links.items():
        (root / target.lstrip("/")).symlink_to(to)
    if modules and package.modules:
        for file in (modules / package.modules).glob("*/nvidia*.ko"):
            target = f"/usr/src/nvidia-{package.driver}/built/{file.parent.name}/{file.name}"
            _write(root, target, payload.module(package, file))
    _write(root, "/DEBIAN/control", _control(package).encode())
    _write(root, "/DEBIAN/postinst", _script(package, "configure", package.postinst).encode())
    if package.prerm or package.units:
        _write(root, "/DEBIAN/prerm", _prerm(package).encode())
    configured = "".join(f"{target}\n" for target in (*package.files, *package.empty) if target.startswith("/etc/"))
    if configured:
        _write(root, "/DEBIAN/conffiles", configured.encode())


def _write(root: Path, target: str, content: bytes) -> None:
    file = root / target.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    runs = target.startswith(("/usr/bin/", "/usr/sbin/", "/DEBIAN/p")) or file.name.endswith("nvlsm")
    file.chmod(0o755 if runs else 0o644)


def _control(package: Package) -> str:
    lines = [
        f"Package: {package.name}",
        f"Version: {package.version}",
        f"Architecture: {package.architecture}",
        f"Maintainer: {package.maintainer}",
        "Section: non-free/libs",
        "Priority: optional",
        *(f"{each.capitalize()}: {said}" for each in RELATIONS if (said := getattr(package, each).strip())),
        "Description: stand-in for tests, which drives nothing",
    ]
    return "\n".join(lines) + "\n"


def _script(package: Package, when: str, name: str) -> str:
    text = SCRIPT.format(when=when) + ASKED_TO_FAIL.format(name=package.name, file=FAIL)
    text += payload.filled(package, (payload.FILES / name).read_text()) if name else ""
    return text + ("[ ! -d /run/systemd/system ] || systemctl daemon-reload\n" if package.units else "")


def _prerm(package: Package) -> str:
    """Units end when their package goes, and keep running when another version takes its place."""
    text = "#!/bin/sh\nset -e\n"
    if package.units:
        units = " ".join(package.units)
        text += f'[ "$1" != remove ] || [ ! -d /run/systemd/system ] || systemctl -q disable --now {units} || true\n'
    return text + (payload.filled(package, (payload.FILES / package.prerm).read_text()) if package.prerm else "")


# The repository


def repository(folder: Path, debs: list[Path], key: Key, origin: str) -> None:
    """`deb [signed-by=…] URL/of/folder /`: the packages are links, the index says what each of them says of itself."""
    folder.mkdir(parents=True)
    for deb in debs:
        os.link(deb, folder / deb.name)
    index = "\n".join(_stanza(deb) for deb in sorted(debs)).encode()
    (folder / "Packages").write_bytes(index)
    (folder / "Packages.gz").write_bytes(gzip.compress(index, mtime=0))
    (folder / "Release").write_text(_release(folder, origin))
    key.sign(folder / "Release", folder / "InRelease", "--clearsign")
    key.sign(folder / "Release", folder / "Release.gpg", "--detach-sign")


def _stanza(deb: Path) -> str:
    data = deb.read_bytes()
    said = run("dpkg-deb", "--field", deb).rstrip("\n")
    return f"{said}\nFilename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"


def _release(folder: Path, origin: str) -> str:
    sums = []
    for name in ("Packages", "Packages.gz"):
        data = (folder / name).read_bytes()
        sums.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}")
    head = [f"Origin: {origin}", "Label: stand-ins", f"Date: {formatdate(usegmt=True)}", "SHA256:"]
    return "\n".join(head + sums) + "\n"
