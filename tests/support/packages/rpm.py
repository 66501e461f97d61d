"""Packages for dnf, built from one spec file, and signed repositories of them."""

import os
import shutil
import tempfile
from pathlib import Path

from tests.machines.image import run
from tests.support.packages.data import STATES, Package
from tests.support.packages.keys import NAME, Key

TOOLS = ("rpmbuild", "rpmsign", "createrepo_c", "modifyrepo_c")
RELATIONS = {"depends": "Requires", "provides": "Provides", "conflicts": "Conflicts", "recommends": "Recommends"}
HEAD = """Name: stand-in
Version: 1
Release: 1
Summary: stand-ins for tests, which drive nothing
License: Apache-2.0
AutoReqProv: no
%description
None of these is ever installed on a machine.
%install
"""


def missing() -> str:
    """The tools that are not there, empty where all are."""
    return ", ".join(tool for tool in TOOLS if not shutil.which(tool))


def build(packages: list[Package], folder: Path, key: Key) -> dict[Package, Path]:
    """Build and sign all of them: a spec file for each driver, as a spec file has one version of a name."""
    for driver in sorted({package.driver for package in packages}):
        _rpmbuild([package for package in packages if package.driver == driver], folder)
    found = {package: folder / f"{package.name}-{package.version}.{_arch(package)}.rpm" for package in packages}
    where = (
        "--define",
        f"_gpg_path {key.home}",
        "--define",
        f"_gpg_name {NAME}",
        "--define",
        f"__gpg {shutil.which('gpg')}",
    )
    run("rpmsign", "--addsign", *where, *found.values())
    return found


def _arch(package: Package) -> str:
    return "noarch" if package.noarch else package.architecture


def _rpmbuild(packages: list[Package], folder: Path) -> None:
    with tempfile.TemporaryDirectory() as top:
        spec = Path(top) / "stand-in.spec"
        spec.write_text(_spec(packages))
        names = ("--define", "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm")
        quick = ("--define", "_binary_payload w1.gzdio", "--define", "debug_package %{nil}")
        places = ("--define", f"_topdir {top}", "--define", f"_rpmdir {folder}")
        run("rpmbuild", "-bb", "--quiet", "--target", "x86_64-linux", *names, *quick, *places, spec)


def _spec(packages: list[Package]) -> str:
    files = {file for package in packages for file in (*package.empty, *package.files)}
    install = [f"install -D /dev/null %{{buildroot}}{file}" for file in sorted(files)]
    return HEAD + "\n".join([*install, *(_section(package) for package in packages)]) + "\n"


def _section(package: Package) -> str:
    version, release = package.version.rsplit("-", 1)
    lines = [
        f"%package -n {package.name}",
        f"Version: {version}",
        f"Release: {release}",
        *([f"Epoch: {package.epoch}"] if package.epoch else []),
        "Summary: stand-in for tests",
        f"Vendor: {package.vendor}",
        f"Packager: {package.maintainer}",
        *(["BuildArch: noarch"] if package.noarch else []),
        *(f"{tag}: {said}" for key, tag in RELATIONS.items() if (said := getattr(package, key))),
        f"%description -n {package.name}",
        "Drives nothing.",
        f"%files -n {package.name}",
        *(*package.empty, *package.files),
    ]
    return "\n".join(lines)


# The repository


def repository(folder: Path, rpms: dict[Package, Path], key: Key) -> None:
    folder.mkdir(parents=True)
    for rpm in rpms.values():
        os.link(rpm, folder / rpm.name)
    run("createrepo_c", "--quiet", "--no-database", folder)
    if streams := sorted({stream for package in rpms for stream in package.streams}):
        modules = folder / "modules.yaml"
        modules.write_text("".join(_stream(stream, list(rpms)) for stream in streams))
        run("modifyrepo_c", "--mdtype=modules", modules, folder / "repodata")
        modules.unlink()
    key.sign(folder / "repodata/repomd.xml", folder / "repodata/repomd.xml.asc", "--detach-sign")


def _stream(stream: str, packages: list[Package]) -> str:
    own = [package for package in packages if stream in package.streams]
    artifacts = "\n".join(f"      - {_nevra(package)}" for package in own)
    profile = "\n".join(f"          - {name}" for name in sorted({package.name for package in own}))
    return f"""---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: "{stream}"
  version: {len(STATES)}
  context: standin1
  arch: x86_64
  summary: stand-in for tests
  description: Drives nothing.
  license: {{module: [MIT]}}
  profiles:
    default:
      rpms:
{profile}
  artifacts:
    rpms:
{artifacts}
...
"""


def _nevra(package: Package) -> str:
    return f"{package.name}-{package.epoch}:{package.version}.{_arch(package)}"
