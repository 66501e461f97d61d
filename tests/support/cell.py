"""A throw-away copy of this computer's file system, in which packages are really installed, and plays that run in it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEEN = (str(ROOT), sys.prefix, sys.base_prefix)

SET_UP = """
set -e
cd "$1"; shift
mount -t tmpfs -o size=2g,mode=755 cell . ; cd "$PWD"
mkdir upper work root
mount -t overlay cell -o lowerdir=/,upperdir=upper,workdir=work root
for there in /proc /dev "$@"; do mkdir -p "root$there"; mount --rbind "$there" "root$there"; done
rm -rf root/etc/apt/sources.list* root/var/lib/apt/lists/*  # nothing is fetched from anywhere but the tests' own repositories
mkdir -p root/run root/etc/apt/sources.list.d root/etc/modprobe.d  # every host with kmod has the last; a container has no kmod
echo ready
exec cat > /dev/null  # ends with whoever holds its input, however that ends
"""

PLAY = """
import json, sys
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.play import PlayOptions
from nodetune.hosts.target import Target
asked = json.load(sys.stdin)
here = Target("here", connection="local", python="/usr/bin/python3")
outcome = play.play(asked["playbook"], [here], {"here": asked["variables"]}, PlayOptions(check=asked["check"]))["here"]
results = [{"task": e.task, "result": e.result} for e in outcome.results]
print(json.dumps({"state": outcome.state, "message": outcome.message, "results": results}))
"""


def impossible():
    """Why there can be no cell here, or nothing."""
    if os.geteuid():
        return "wants root: packages are installed in an overlay of this file system"
    probe = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "mount -t tmpfs none /mnt"]
    return "" if subprocess.run(probe, capture_output=True).returncode == 0 else "mounting is not allowed here"


class Cell:
    """`with Cell() as cell:` what is done in it is seen in it only, and gone at the end."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="nodetune-cell-")
        self.place = self._folder.name
        seen = [path for path in dict.fromkeys(SEEN) if os.stat(path).st_dev != os.stat("/").st_dev]
        start = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SET_UP, "cell", self.place, *seen]
        self._holder = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self._holder.kill()
        self._holder.communicate()
        self._folder.cleanup()

    def run(self, argv, text=None, check=True, env=None):
        """Run a command in the cell; its output."""
        inside = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "chroot", f"{self.place}/root", *argv]
        done = subprocess.run(
            inside, input=text, capture_output=True, text=True, cwd="/", env={**os.environ, **(env or {})}
        )
        assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def read(self, path):
        return self.run(["cat", path])

    def write(self, path, text):
        self.run(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat > "$1"', "sh", path], text)

    def play(self, playbook, variables, check=False):
        """Run a playbook here: {state, message, results: [{task, result}]}."""
        asked = json.dumps({"playbook": playbook, "variables": variables, "check": check})
        done = self.run([sys.executable, "-c", PLAY], asked, env={"PYTHONPATH": str(ROOT)})
        return json.loads(done.splitlines()[-1])

    def debs(self):
        """Name → version of what dpkg says is installed."""
        out = self.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package}|${Version}\\n"])
        return {
            name: version for status, name, version in (line.split("|") for line in out.splitlines()) if status == "ii "
        }
