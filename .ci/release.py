"""Makes a release of the last commit, in dist/: wheel, sdist, bundle, zipapp, packages, collection, chart, images, SBOM, checksums.

Run it by make release; python .ci/release.py [--key ~/.ssh/id_ed25519]: with a key, ssh-keygen signs the checksums. Versions of dependencies are those that
the package index had at the time of the commit, so that a second run writes the same bytes. The bundle is for the
processor architecture of this machine.
"""

# ruff: noqa: INP001  (a program, not part of a package)

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import platform
import runpy
import shutil
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TOOLS = Path(sys.executable).parent


class Release:
    """The last commit of a checkout, and the folder that gets what is made of it."""

    def __init__(self, work: Path, dist: Path) -> None:
        self.work, self.dist, self.source = work, dist, work / "source"
        self.time = int(_run("git", "-C", HERE, "log", "-1", "--format=%ct"))
        self.before = datetime.fromtimestamp(self.time, timezone.utc).isoformat()
        os.environ["SOURCE_DATE_EPOCH"] = str(self.time)

    def packages(self) -> None:
        """Build the sdist from what is committed, and the wheel from the sdist."""
        self.source.mkdir()
        _run("git", "-C", HERE.parent, "archive", "-o", self.work / "source.tar", "HEAD")
        _run("tar", "-xf", self.work / "source.tar", "-C", self.source)
        known = runpy.run_path(str(HERE.parent / "packaging/version.py"))
        stated = self.source / known["SOURCE"]
        stated.write_text(known["stamped"](stated.read_text(), known["of"]()))
        _run(sys.executable, "-m", "build", "--outdir", self.dist, self.source)
        self.wheel = next(self.dist.glob("*.whl"))
        self.version = self.wheel.name.split("-")[1]

    def kubernetes(self) -> None:
        """Pack the Helm chart, and what image/build and image/controller need."""
        charts, images = self.work / "charts/nodetune", self.work / f"nodetune-{self.version}-images"
        module = "nodetune.guard.deploy.kubernetes"
        _run(sys.executable, "-m", f"{module}.chart", charts, at=self.source)
        shutil.copy(self.source / "charts/nodetune/values.yaml", charts)
        self._pack(charts, f"nodetune-{self.version.replace('.dev', '-dev.')}.tgz")
        shutil.copytree(self.source / "image", images)
        _run(sys.executable, "-m", f"{module}.image", images / "program.tar", at=self.source)
        self._pack(images)

    def bundle(self) -> Path:
        """Pack the wheels of all dependencies for every supported Python. Return the unpacked bundle."""
        folder = self.work / f"nodetune-{self.version}-bundle"
        wheels, constraints = folder / "wheels", folder / "constraints.txt"
        wheels.mkdir(parents=True)
        self._compile(self.source / "pyproject.toml", constraints, "--universal", "--generate-hashes", "--no-annotate")
        installer = self.work / "installer.txt"
        installer.write_text("pip\n")
        for python in PYTHONS:
            self._download(constraints, wheels, python)
        self._download(installer, wheels, PYTHONS[0])
        shutil.copy(self.wheel, wheels)
        with constraints.open("a") as stream:
            stream.write(f"nodetune=={self.version} --hash=sha256:{_digest(self.wheel)}\n")
        for each in (HERE / "install.sh", self.source / "LICENSE"):
            shutil.copy(each, folder)
        self._pack(folder)
        return folder

    def _download(self, wanted: Path, wheels: Path, python: str) -> None:
        """Download the wheels of requirements for one Python and any Linux from RHEL 8 on."""
        pinned = self.work / "pinned.txt"
        self._compile(wanted, pinned, "--no-deps", "--generate-hashes", python=python)
        asked = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", python]
        for libc in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
            asked += ["--platform", f"{libc}_{platform.machine()}"]
        _run(sys.executable, "-m", "pip", "download", *asked, "-d", wheels, "-r", pinned)
        pinned.unlink()

    def _compile(self, source: Path, into: Path, *words: str, python: str = PYTHONS[0]) -> None:
        asked = ("--no-header", "--python-version", python, "--exclude-newer", self.before)
        _run(TOOLS / "uv", "pip", "compile", "-q", *asked, *words, "-o", into, source)

    def _pack(self, folder: Path, name: str = "") -> None:
        """Write a folder as an archive that depends on its contents and the time of the commit only."""

        def same(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = 0, 0, "", "", self.time
            entry.mode = 0o755 if entry.isdir() or entry.name.endswith(".sh") or entry.mode & 0o100 else 0o644
            return entry

        with (
            (self.dist / (name or f"{folder.name}.tar.gz")).open("wb") as stream,
            gzip.GzipFile("", "wb", 6, stream, self.time) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(folder, folder.name, filter=same)

    def zipapp(self) -> None:
        """Pack nodetune with what it needs for an audit, all of it pure Python, as one file."""
        site = self.work / "site"
        asked = ("--python-version", PYTHONS[0], "--exclude-newer", self.before, "--overrides", HERE / "zipapp.txt")
        _run(TOOLS / "uv", "pip", "install", "-q", "--target", site, *asked, self.wheel)
        shutil.rmtree(site / "bin")  # these, and the last three, name places on this machine
        for pattern in ("*.so", "*/RECORD", "*/direct_url.json", "*/uv_cache.json"):  # each *.so has a twin in Python
            for each in site.rglob(pattern):
                each.unlink()
        entry = ("-e", "nodetune.cli.main:main", "-p", "/usr/bin/env python3", "--root", "~/.cache/nodetune-zipapp")
        out = self.dist / "nodetune.pyz"
        _run(TOOLS / "shiv", "--site-packages", site, "-o", out, "--compressed", "--reproducible", *entry)

    def system_packages(self, about: list[str]) -> None:
        """Build what packaging/ makes, from what is committed. `about`: options of packaging/build.py."""
        for program, more in (("build", ("--zipapp", self.dist / "nodetune.pyz", *about)), ("collection", ())):
            _run(sys.executable, self.source / f"packaging/{program}.py", self.dist, *more, PYTHONPATH=str(self.source))

    def sbom(self, bundle: Path) -> None:
        """Install the bundle, and list what is there."""
        _run("sh", bundle / "install.sh", self.work / "installed", PYTHON=sys.executable)
        python, out = self.work / "installed/bin/python", self.dist / f"nodetune-{self.version}.cdx.json"
        lister = ("tool", "run", "-q", "--exclude-newer", self.before, "--from", "cyclonedx-bom", "cyclonedx-py")
        _run(TOOLS / "uv", *lister, "environment", "--output-reproducible", "-o", out, python)

    def sums(self, key: Path | None) -> None:
        """Write the checksums of all files, and the signature."""
        out = self.dist / "SHA256SUMS"
        out.write_text("".join(f"{_digest(each)}  {each.name}\n" for each in sorted(self.dist.iterdir())))
        if key:
            _run("ssh-keygen", "-Y", "sign", "-q", "-n", "file", "-f", key, out)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(*words: str | Path, at: Path | None = None, **more: str) -> str:
    """Return what a command prints. End with its output if it fails."""
    env = {**os.environ, **more}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, env=env, cwd=at)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}release: this failed: {' '.join(map(str, words))}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--key", type=Path, help="a private SSH key that signs the checksums")
    parser.add_argument("--maintainer", help="who answers for the packages: Name <mail>")
    parser.add_argument("--url", help="where they come from")
    given = parser.parse_args()
    if given.key and not given.key.is_file():
        sys.exit(f"release: there is no key {given.key}")
    os.umask(0o022)  # modes are part of what is packed
    dist = HERE.parent / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    with TemporaryDirectory() as work:
        release = Release(Path(work), dist)
        release.packages()
        release.kubernetes()
        release.zipapp()
        release.system_packages(
            [f"--{name}={getattr(given, name)}" for name in ("maintainer", "url") if getattr(given, name)]
        )
        release.sbom(release.bundle())
        release.sums(given.key)
    for each in sorted(dist.iterdir()):
        print(f"{each.stat().st_size / 1e6:8.1f} MB  dist/{each.name}")


if __name__ == "__main__":
    main()
