"""What tests of the measuring payload share: planted measurements, runs of them, and which processes are left."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from nodetune.measurements import main
from nodetune.onhost import one_reader, protocol
from nodetune.remote import payload

SLEEPS = """
import os, time
def measure(options, report):
    os.environ["NODETUNE_TEST"] = options["marker"]
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "300"])
    report.step("sleeping")
    time.sleep(300)
"""
"""A measurement that never ends, with a process below it."""


def planted(folder, **sources):
    """A copy of nodetune/measurements with measurements added: name → the source of measure()'s module."""
    shutil.copytree(payload.MEASUREMENTS, folder / "measurements", ignore=shutil.ignore_patterns("__pycache__"))
    for name, source in sources.items():
        (folder / "measurements" / f"{name}.py").write_text(source)
    return folder / "measurements"


def plan(*names, **more):
    return {"measurements": [{"name": name, "seconds": 20} for name in names], **more}


class Run:
    """A plan carried out by a Python here as on a host: the script on its standard input, which stays open."""

    def __init__(self, plan, python=sys.executable, flags=("-I", "-S"), given=None):
        script, self.nonce = given or payload.measuring(plan)
        code = "import os; f = os.fdopen(0, 'rb', 0); exec(f.readline())"
        self.process = subprocess.Popen(
            [python, *flags, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.process.stdin.write(script)
        self.process.stdin.flush()
        self._decoder = protocol.Decoder(self.nonce, protocol.event)
        self.events = []

    def until(self, found):
        """Read events until found(event) is true of one; returns that one, or None at the end of output."""
        while True:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            new = self._decoder.feed(data)
            self.events += new
            for event in new:
                if found(event):
                    return event

    def all(self):
        """Everything that it says, its input left open."""
        self.until(lambda event: "end" in event)
        return self

    def hang_up(self):
        self.process.stdin.close()

    def records(self):
        return [event["record"] for event in self.events if "record" in event]

    def close(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


def wait_for_free_place():
    """Until no verify of anybody is at work on this machine, which has a place for one."""
    assert gone(lambda: one_reader.rivals(lambda name: name.startswith(main.MARK)), 300) == []


def alive(marker):
    """The processes whose command line or environment that we wrote holds the marker."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            said = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if state not in "ZX" and marker.encode() in said:
            found.append(int(entry.name))
    return found


def gone(look, seconds=30):
    """Wait until look() finds nothing any more. Returns what it found last."""
    end = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


LOOP = "open('/proc/self/comm', 'w').write('nt-busy-loop')\nprint(flush=True)\nwhile True: pass"


@contextmanager
def busy(count):
    """Processes of somebody else that compute without end, all of them at work."""
    found = [subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for each in found:
            each.stdout.readline()
        yield [each.pid for each in found]
    finally:
        for each in found:
            each.kill()
            each.wait()
            each.stdout.close()
