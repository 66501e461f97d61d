"""Build packages, deb and rpm, in a folder: guard and collector for nodes, and a controller's zipapp. See docs/install.md.

Needs dpkg-deb and rpmbuild (Debian: apt install dpkg-dev rpm). The same sources and settings give the same bytes.
"""

# ruff: noqa: INP001  (a program, not part of a package)

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import textwrap
import time
from email.utils import formatdate
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import tree
import version
from tree import PackagesRequest

from nodetune.cli import options, requests
from nodetune.cli.requests import of
from nodetune.foundation import UserError

HERE = Path(__file__).resolve().parent
VERSION = version.of().replace(".dev", "~dev")
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "1735689600"))
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Files: *
Copyright: 2025-2026 the authors of nodetune
License: Apache-2.0
 /usr/share/common-licenses/Apache-2.0 has the text.
Comment:
 pynvml.py, and the part of it in the collector, is by NVIDIA Corporation
 (2011-2025) under a BSD licence, which is at its head.
"""


def deb(package: tree.Package, request: PackagesRequest, work: Path, out: Path) -> None:
    """Write a package of Debian."""
    who = request.maintainer
    root, control = work / "deb", work / "deb/DEBIAN"
    doc = f"{tree.DOC}/{package.name}"
    changes = f"{package.name} ({VERSION}) unstable; urgency=medium\n\n  * Built from nodetune {version.of()}.\n\n -- {who}  {formatdate(TIME)}\n"
    files = {
        **package.files,
        f"{doc}/copyright": (0o644, COPYRIGHT.encode()),
        f"{doc}/changelog.gz": (0o644, gzip.compress(changes.encode(), 9, mtime=0)),
    }
    _write(root, files)
    size = sum(len(content) for _, content in files.values()) // 1024 + 1
    fields = {
        "Package": package.name,
        "Version": VERSION,
        "Architecture": "all",
        "Maintainer": who,
        "Installed-Size": size,
        "Depends": f"python3 (>= {package.python})",
        "Section": "admin",
        "Priority": "optional",
        "Homepage": request.url,
        "Description": package.summary + "".join(f"\n {line}" for line in _lines(package)),
    }
    sums = "".join(f"{hashlib.md5(c, usedforsecurity=False).hexdigest()}  {p[1:]}\n" for p, (_, c) in files.items())
    texts = {"control": "".join(f"{name}: {value}\n" for name, value in fields.items()), "md5sums": sums}
    if package.settings:
        texts["conffiles"] = "".join(f"{path}\n" for path in package.settings)
    _write(control, {name: (0o644, text.encode()) for name, text in texts.items()})
    scripts = {
        "postinst": _case("configure", _part(package, "after-install"), _deb_enable(package)),
        "prerm": _case("remove", _part(package, "before-remove"), _deb_stop(package)) + _clean(package),
        "postrm": _case("purge", _deb_forget(package), _part(package, "after-purge")),
    }
    _write(control, {name: (0o755, f"#!/bin/sh\nset -e\n{text}".encode()) for name, text in scripts.items() if text})
    _age(root)
    _run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, out / f"{package.name}_{VERSION}_all.deb")


def rpm(package: tree.Package, request: PackagesRequest, work: Path, out: Path) -> None:
    """Write a package of the RPM family."""
    root, top = work / "rpm", work / "top"
    own = {
        path.replace("/zsh/vendor-completions/", "/zsh/site-functions/"): each for path, each in package.files.items()
    }
    files = {**own, f"/usr/share/licenses/{package.name}/LICENSE": (0o644, _license())}
    _write(root, files)
    _age(root)
    units = " ".join(package.units)
    running = "[ ! -d /run/systemd/system ] ||"
    enable = f"systemctl enable -q {package.enabled}\n{running} systemctl start {package.enabled}\n"
    stop = f"{running} systemctl stop {units}\nsystemctl disable -q {package.units[0]}\n" if units else ""
    scripts = {
        "post": _if("1", enable if package.enabled else ""),
        "posttrans": _part(package, "after-install"),
        "preun": _if("0", _part(package, "before-remove") + stop),
        "postun": _if("0", _part(package, "after-purge")) + _rest(package),
    }
    known = {
        "name": package.name,
        "version": VERSION,
        "summary": package.summary[0].upper() + package.summary[1:],
        "text": "\n".join(_lines(package)),
        "python": package.python,
        "root": root,
        "files": "\n".join(_rpm_file(package, path, mode) for path, (mode, _) in files.items()),
        "folders": "\n".join(f"%dir {each}" for each in _folders(files)),
        "scripts": "".join(f"%{name}\n{text}\n" for name, text in scripts.items() if text),
        "time": time.strftime("%a %b %d %Y", time.gmtime(TIME)),
        "who": request.maintainer,
        "url": request.url,
    }
    spec = work / f"{package.name}.spec"
    spec.write_text((HERE / "rpm.spec").read_text().format_map(known))
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(TIME), "TZ": "UTC"}
    _run("rpmbuild", "-bb", "--quiet", "--define", f"_topdir {top}", "--define", f"_rpmdir {top}", spec, env=env)
    (made,) = top.rglob("*.rpm")
    (out / made.name).write_bytes(made.read_bytes())


def _rpm_file(package: tree.Package, path: str, mode: int) -> str:
    kind = "%config(noreplace) " * (path in package.settings)
    kind += "%doc " * path.startswith(tree.DOC) + "%license " * path.startswith("/usr/share/licenses")
    return f"%attr({mode:04o},root,root) {kind}{path}"


def _folders(files: dict[str, tuple[int, bytes]]) -> list[str]:
    """Return the folders that no other package has."""
    found = {str(each) for path in files for each in Path(path).parents}
    return sorted(each for each in found if "nodetune" in each)


def _lines(package: tree.Package) -> list[str]:
    return textwrap.wrap(package.text, 75)


def _license() -> bytes:
    return (HERE.parent / "LICENSE").read_bytes()


def _part(package: tree.Package, name: str) -> str:
    """Return one part of the scripts of a package; empty if it has none."""
    path = HERE / package.name.removeprefix("nodetune-") / name
    return (
        path.read_text().replace("@program@", package.program).replace("@folder@", package.folder)
        if path.exists()
        else ""
    )


def _case(word: str, *parts: str) -> str:
    text = "".join(parts)
    return f'if [ "$1" = {word} ]; then\n{text}fi\n' if text else ""


def _if(count: str, text: str) -> str:
    """Return what a script of rpm does where so many versions of the package are there afterwards."""
    return f'if [ "$1" = {count} ]; then\n{text}fi\n' if text else ""


def _clean(package: tree.Package) -> str:
    return f"find {package.program} -name __pycache__ -type d -prune -exec rm -rf {{}} +\n" if package.program else ""


def _rest(package: tree.Package) -> str:
    """Remove what was compiled once the sources are gone: the scripts of old and new run in another order from rpm to rpm."""
    gone = f"[ -e {package.program}/nodetune/__init__.py ]"
    folders = f"rmdir {tree.HOME} {tree.LIB} 2> /dev/null || true"
    return f"{gone} || rm -rf {package.program}\n{folders}\n" if package.program else ""


def _deb_enable(package: tree.Package) -> str:
    """Return the lines that start a timer, without a reload of systemd: that can take GPUs away from containers."""
    helper, timer = "deb-systemd-helper", package.enabled
    if not timer:
        return ""
    return (
        f"if {helper} --quiet was-enabled {timer}; then\n{helper} enable {timer} > /dev/null\n"
        f"else\n{helper} update-state {timer} > /dev/null\nfi\n"
        f"[ ! -d /run/systemd/system ] || deb-systemd-invoke start {timer} > /dev/null || true\n"
    )


def _deb_stop(package: tree.Package) -> str:
    stop = f"[ ! -d /run/systemd/system ] || deb-systemd-invoke stop {' '.join(package.units)} > /dev/null || true\n"
    return stop if package.units else ""


def _deb_forget(package: tree.Package) -> str:
    return f"deb-systemd-helper purge {package.units[0]} > /dev/null || true\n" if package.units else ""


def _write(root: Path, files: dict[str, tuple[int, bytes]]) -> None:
    for name, (mode, content) in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)


def _age(root: Path) -> None:
    """Give each file one time."""
    for path in [*root.rglob("*"), root]:
        os.utime(path, (TIME, TIME))


def _run(*words: str | Path, env: dict[str, str] | None = None) -> None:
    env = env or {**os.environ, "SOURCE_DATE_EPOCH": str(TIME)}
    try:
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, env=env)
    except FileNotFoundError:
        raise UserError(f"{words[0]} is not installed: apt install dpkg-dev rpm") from None
    if done.returncode:
        raise UserError(f"{words[0]} failed: {(done.stderr or done.stdout).strip()}")


def build(request: PackagesRequest, out: Path) -> None:
    """Write all packages. Raise UserError."""
    out.mkdir(parents=True, exist_ok=True)
    for package in tree.packages(request):
        for write in (deb, rpm):
            with TemporaryDirectory() as work:
                write(package, request, Path(work), out)


@requests.command("build", PackagesRequest)
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--mode", **of(PackagesRequest, "mode"), help="Mode of the guard.")
@click.option("--textfile", **of(PackagesRequest, "textfile"), help="File for the metrics of the guard's timer.")
@click.option("--dir", "folder", **of(PackagesRequest, "folder"), help="Folder on the nodes for the facts.")
@click.option("--every", callback=options.span, default="30m", show_default=True, help="As in nodetune pull bundle.")
@click.option("--user", **of(PackagesRequest, "user"), help="User that writes the facts. Default: root.")
@click.option(
    "--zipapp",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also pack this nodetune.pyz, as the package nodetune.",
)
@click.option("--maintainer", **of(PackagesRequest, "maintainer"), help="Who answers for the packages.")
@click.option("--url", **of(PackagesRequest, "url"), help="Where they come from.")
@options.judging
def main(request: PackagesRequest, out: Path) -> None:
    """Write nodetune-guard and nodetune-pull, as deb and rpm, to the folder OUT."""
    os.umask(0o022)
    build(request, out)


if __name__ == "__main__":
    try:
        main()
    except (UserError, OSError) as problem:
        click.echo(f"packaging/build.py: {problem}", err=True)
        sys.exit(2)
