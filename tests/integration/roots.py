"""Clean roots of distributions, without network: Debian and Ubuntu from their mirrors, by mmdebstrap (root)."""

import hashlib
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

MIRRORS = {
    "bookworm": ("http://deb.debian.org/debian", "main"),
    "trixie": ("http://deb.debian.org/debian", "main"),
    "noble": ("http://archive.ubuntu.com/ubuntu", "main universe"),
}
PROGRAMS = "apt,python3,python3-venv,pipx,openssh-client,systemd,udev,init-system-helpers,dnf,rpm"
OF_OTHERS = re.compile(
    r"/(packages|proc|dev|run/lock|var/log|var/cache|var/lib/(apt|dpkg|dnf|rpm))(/|$)"
    r"|/__pycache__(/|$)|/root/\.(cache/(uv|pip)|rpmdb)(/|$)"
    r"|/root/\.local/(share/|state/)?(pipx|uv)($|/(shared|logs?|py|trash|\.cache)(/|$)|/(venvs|tools)(/\.\w+)?$)"
)
"""What the programs that install keep of themselves, whatever they install."""


def run(*words, codes=(0,), **more):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **more)
    assert done.returncode in codes, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def archive(suite, out):
    source = "deb [trusted=yes] {} {suite} {}".format(*MIRRORS[suite], suite=suite)
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PROGRAMS}", suite, out, source)
    return out


class Root:
    """A root of a distribution, in which commands run with their own processes and host name."""

    def __init__(self, archive, folder):
        self.folder = folder
        folder.mkdir()
        run("tar", "xf", archive, "-C", folder, "--exclude=./dev/*")
        for name, number in {"null": 3, "zero": 5, "urandom": 9}.items():
            run("mknod", "-m", "666", folder / "dev" / name, "c", "1", number)

    def run(self, text, codes=(0,)):
        place = self.folder  # a mount, because rpm 4.20 runs scripts in a mount namespace of their own
        mounts = f"mount --bind {place} {place}; mount -t proc proc {place}/proc"
        inside = f"{mounts}; hostname node1; exec chroot {place} /bin/sh -c {shlex.quote(text)}"
        spaces = ("unshare", "--mount", "--uts", "--net", "--pid", "--fork")
        known = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}
        env = {"PATH": "/root/.local/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **known}
        return run(*spaces, "sh", "-c", inside, codes=codes, env=env).stdout

    def path(self, name):
        return self.folder / name.lstrip("/")

    def take(self, folder, *patterns):
        """Put files into /packages, and nothing else."""
        shutil.rmtree(self.path("/packages"), ignore_errors=True)
        self.path("/packages").mkdir()
        for each in (each for pattern in patterns for each in folder.glob(pattern)):
            shutil.copy(each, self.path("/packages"))

    def content(self):
        """All files, links and folders that are not of others: path → mode and what is in it."""
        found = {}
        for path in self.folder.rglob("*"):
            name = f"/{path.relative_to(self.folder)}"
            if not OF_OTHERS.search(name):
                found[name] = (stat.filemode(path.lstat().st_mode), _held(path))
        return found


def _held(path: Path):
    if path.is_symlink():
        return str(path.readlink())
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def changed(before, after):
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
