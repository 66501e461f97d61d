"""The folder in which one play of Ansible works: in memory where that can be, closed to others, and thrown away.

It holds what must not outlive the play: passwords (in the inventory) and ansible-runner's copy of the environment.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nodetune.foundation import paths
from nodetune.remote import payload

PREFIX = "nodetune-play-"
MIN_FREE = 32 << 20
STARTING_SECONDS = 60.0
"""How old a folder without a lock must be to count as left behind."""

ENDING_SECONDS = 15.0

_FOREIGN = ("ANSIBLE_", "AWX_", "RUNNER_", "ORIGINAL_STDOUT_", "JOB_ID", "AD_HOC_COMMAND_ID", "PROJECT_UPDATE_ID")


def places() -> list[Path]:
    """Return where such folders may be, best first: in memory, so that no password reaches a disk."""
    found = [Path("/dev/shm"), Path(os.environ.get("XDG_RUNTIME_DIR") or "/dev/shm")]  # noqa: S108  (mkdtemp is used)
    return [*dict.fromkeys(found), Path(tempfile.gettempdir())]


def _usable(place: Path) -> bool:
    try:
        free = os.statvfs(place)
    except OSError:
        return False
    return os.access(place, os.W_OK | os.X_OK) and free.f_bavail * free.f_frsize >= MIN_FREE


class Workspace:
    """One such folder, with what Ansible needs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inventory = folder / "hosts.yml"
        self.artifacts = folder / "artifacts"

    def lay_out(self, inventory: str) -> None:
        """Write all files but the playbook, which is the installed one."""
        for name in ("home", "tmp", "cp", "env", "project", "module_utils"):
            (self.folder / name).mkdir(mode=0o700)
        self.inventory.touch(mode=0o600)
        self.inventory.write_text(inventory, "utf-8")
        (self.folder / "ansible.cfg").touch()
        (self.folder / "module_utils" / "pynvml.py").write_text(payload.pynvml_source(), "utf-8")
        # ansible-runner forgets settings that are passed to it when there is no such file
        settings = {"suppress_ansible_output": True, "suppress_output_file": True, "pexpect_timeout": 1}
        (self.folder / "env" / "settings").write_text(json.dumps(settings), "utf-8")

    def environment(self, callbacks: str, artifacts: str) -> dict[str, str]:
        """Return everything that decides how Ansible behaves.

        The user's ansible.cfg and ANSIBLE_… have no effect: the inventory already has their connection settings. The
        rest of the environment stays (an SSH proxy may need it).
        """
        playbooks = paths.shared("playbooks")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        own = {
            "CONFIG": str(self.folder / "ansible.cfg"),
            "HOME": str(self.folder / "home"),
            "LOCAL_TEMP": str(self.folder / "tmp"),
            "SSH_CONTROL_PATH_DIR": str(self.folder / "cp"),
            "LIBRARY": str(playbooks / "library"),
            "MODULE_UTILS": f"{playbooks / 'module_utils'}:{self.folder / 'module_utils'}",
            "CALLBACK_PLUGINS": callbacks,
            "CONNECTION_PLUGINS": str(playbooks / "connection"),
            "BECOME_PLUGINS": str(playbooks / "become"),
            "STDOUT_CALLBACK": "awx_display",
            "HOST_KEY_CHECKING": "True",
            "PIPELINING": "True",
            "GATHERING": "explicit",
            "CACHE_PLUGIN": "memory",
            "RETRY_FILES_ENABLED": "False",
            "NOCOWS": "True",
            "NOCOLOR": "True",
            "DEPRECATION_WARNINGS": "False",
            "LOCALHOST_WARNING": "False",
            "INJECT_FACT_VARS": "False",  # a host's facts never become variables of the play
            "NO_TARGET_SYSLOG": "True",  # whole files would land in the logs of hosts
        }
        runner = {"AWX_ISOLATED_DATA_DIR": artifacts, "MAX_EVENT_RES": str(256 << 20)}
        told = {f"ANSIBLE_{name}": value for name, value in own.items()}
        return {**kept, **told, **runner, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}

    def command(self, ansible: list[str]) -> list[str]:
        """Return the command that starts Ansible, under a supervisor and by its full path."""
        supervisor = Path(__file__).with_name("supervisor.py")
        own = [sys.executable, "-I", str(supervisor), str(self.folder), str(os.getpid())]
        playbook = Path(sys.executable).with_name("ansible-playbook")
        start = [str(playbook)] if playbook.exists() else [*paths.start("ansible.__main__"), "playbook"]
        return [*own, *start, *ansible[1:]]

    def stop(self) -> None:
        """Ask the supervisor to end Ansible and all its processes; asked a second time, it kills them at once."""
        with suppress(OSError, ValueError):
            os.kill(self._supervisor(), signal.SIGTERM)

    def _supervisor(self) -> int:
        return int((self.folder / "supervisor").read_text("ascii"))

    def end(self) -> None:
        """Stop Ansible at once, and wait until it is gone: it must not write to a folder that is being removed."""
        end = time.monotonic() + ENDING_SECONDS
        with suppress(OSError, ValueError):
            pid = self._supervisor()
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < end:
                os.kill(pid, signal.SIGTERM)
                time.sleep(0.1)


@contextmanager
def opened() -> Iterator[Workspace]:
    """Make a new folder, and remove it at the end in any case. Raise OSError if none can be made."""
    sweep()
    place = next(filter(_usable, places()), None)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Workspace(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove what killed runs of this user left behind: folders whose lock nobody holds."""
    for place in places():
        with suppress(OSError):
            for folder in place.glob(f"{PREFIX}*"):
                if folder.lstat().st_uid == os.geteuid() and not folder.is_symlink() and _is_left(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > STARTING_SECONDS
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
