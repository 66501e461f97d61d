"""One machine of the fleet: start, log in, reboot, cut its power, stop.

Disks take part in a power cut honestly: QEMU runs with cache=writeback, so what the guest flushed is on the host, and
what it did not flush may be lost with its memory and QEMU's. The host itself stays up, so a lost host cache is not played.
"""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from tests.machines import place, qemu
from tests.machines.image import Image, run
from tests.machines.place import FleetError, until
from tests.machines.qmp import Monitor

HONEST = "writeback"
CRASHED = -signal.SIGSEGV
BOOT_SECONDS = 600
"""Generous: several emulated machines may boot at once on two cores."""
DISKS = {"root": "template/root.qcow2", "swap": "swap.raw", "nvme0": "data.raw", "nvme1": "scratch.raw"}


class Machine:
    """A machine by its number: its address is 127.0.1.<number>, its name gpu<number>."""

    def __init__(self, number: int, image: Image):
        self.number = number
        self.image = image
        self.name = place.name(number)
        self.address = place.address(number)
        self.port = place.PORT
        self.folder = place.folder() / "run" / str(number)
        self.disks = {name: self.folder / f"{name}.qcow2" for name in DISKS}
        self._process = None
        self._held = None
        self._comes_back = True

    @classmethod
    def find(cls, number: int) -> "Machine | None":
        """A machine that was started earlier, by whatever program, with the image that it was started from."""
        image = place.folder() / "run" / str(number) / "image"
        return cls(number, Image(image.readlink())) if image.is_symlink() else None

    def __repr__(self):
        return f"<Machine {self.name} {self.address}>"

    # Power

    def start(self, mode: str = "resume") -> "Machine":
        """A new machine with new disks: resumed from the template in seconds, or booted through GRUB (mode "cold")."""
        self.create_disks(DISKS)
        if mode == "resume":
            self._resume()
        else:
            self.launch(*qemu.memory(), *qemu.with_nvme(self.disks, HONEST))
        self.wait_for_ssh()
        self.ssh(f"fleet-become {self.name} {self.number} {time.time():.3f}")
        return self

    def create_disks(self, bases: dict[str, str]) -> None:
        """A new folder with disks that begin as those of the image; what was there before is gone."""
        self.stop()
        self.folder.mkdir(parents=True)
        (self.folder / "image").symlink_to(self.image.folder)
        for name, base in bases.items():
            file = self.image.folder / base
            given = ("-f", "qcow2", "-b", file, "-F", file.suffix.lstrip("."))
            run("qemu-img", "create", "-q", *given, self.disks[name])

    def launch(self, *arguments: str, cache: str = HONEST) -> None:
        """Start QEMU on this machine's disks; returns when it can be asked."""
        command = qemu.command(self.number, self.folder, self.image.folder, self.disks, cache)
        self._held = self._held or self.image.hold()
        with (self.folder / "qemu.log").open("ab") as said:
            self._process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                pass_fds=[self._held],  # the image stays in use for as long as QEMU lives
            )
        (self.folder / "pid").write_text(str(self._process.pid))
        threading.Thread(target=self._survive, args=(self._process,), daemon=True).start()
        self._until("QEMU answers", self._answers)

    def _survive(self, process: subprocess.Popen) -> None:
        """QEMU 7.2 crashes now and then while a guest resets: such a machine lost its power, and gets it back."""
        if process.wait() == CRASHED and self._process is process and self._comes_back:
            self.launch(*qemu.memory(), *qemu.with_nvme(self.disks, HONEST))

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            self.qmp("query-status")
            return True
        return False

    def _resume(self) -> None:
        template = self.image.folder / "template"
        self.launch(*qemu.memory(template / "frozen"), "-incoming", "defer")
        with Monitor(self.folder / "qmp") as ask:
            ask("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])
            ask("migrate-incoming", uri=f"exec:cat {shlex.quote(str(template / 'frozen.state'))}")
            self._until("the frozen state loads", lambda: ask("query-status")["status"] == "paused")
            ask("cont")
            for node in qemu.NODES:
                drive = qemu.nvme_drive(node, self.disks[f"nvme{node}"], HONEST)
                ask("human-monitor-command", **{"command-line": f"drive_add 0 {drive}"})
                ask("device_add", **qemu.nvme(node))

    def power_cut(self) -> None:
        """The machine stops at once. Its disks keep what it flushed, and perhaps more."""
        self.hang_up()
        self._kill()

    def fail_at_reboot(self) -> None:
        """From now on a reboot from inside ends the machine, until `power_on`: so a server fails that does not come back."""
        self._comes_back = False
        self.qmp("set-action", reboot="shutdown")

    def wait_for_end(self) -> None:
        """Wait until the machine has no power any more."""
        try:
            until(f"{self.name} ends", lambda: not self.running())
        except FleetError as error:
            raise FleetError(f"{error}\n{self._last_words()}") from None

    def power_on(self) -> None:
        """Boot through GRUB from the disks as they are, and wait until one can log in."""
        self._comes_back = True
        self.launch(*qemu.memory(), *qemu.with_nvme(self.disks, HONEST))
        self.wait_for_ssh()

    def reboot(self) -> None:
        """Reboot from inside; returns when the new system lets one log in."""
        before = self.boot_id()
        self.ssh("systemctl reboot --no-block", check=False)
        self.wait_for_reboot(before)

    def wait_for_reboot(self, before: str) -> None:
        """Wait until the machine runs with another boot id than `before`."""
        self.hang_up()
        self._until(
            "the machine comes back from its reboot", lambda: self._booted_anew(before), BOOT_SECONDS, every=0.5
        )

    def _booted_anew(self, before: str) -> bool:
        """Asks by a connection of its own: one that is shared may lead to the system that is going down, and hang."""
        words = ["ssh", *self.ssh_options(), f"root@{self.address}", "cat /proc/sys/kernel/random/boot_id"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            now = self._greets() and subprocess.run(words, capture_output=True, text=True, timeout=60).stdout.strip()
            return bool(now) and now != before
        return False

    def boot_id(self) -> str:
        return self.read("/proc/sys/kernel/random/boot_id").strip()

    def stop(self) -> None:
        """End the machine and remove its files. Nothing happens when there is none."""
        if self.folder.exists():
            self.hang_up()
            self._kill()
            shutil.rmtree(self.folder)
        if self._held:
            os.close(self._held)
            self._held = None

    def _pid(self) -> int | None:
        """The process of this machine, also when another program started it; None when there is none."""
        if self._process and self._process.poll() is None:
            return self._process.pid
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.folder / "pid").read_text())
            if f"{self.folder}/".encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        return None

    def _kill(self) -> None:
        if pid := self._pid():
            os.kill(pid, signal.SIGKILL)
            if self._process and self._process.pid == pid:
                self._process.wait()
            until(f"{self.name} ends", lambda: self._pid() is None)

    def running(self) -> bool:
        return self._pid() is not None

    def qmp(self, command: str, **arguments):
        """Ask this machine's QEMU."""
        with Monitor(self.folder / "qmp") as ask:
            return ask(command, **arguments)

    # Logging in

    def ssh_options(self) -> list[str]:
        """OpenSSH options under which this machine is known and lets root, op and nosudo in by key."""
        known = self.folder / "known_hosts"
        known.write_text(f"[{self.address}]:{self.port} {self.image.host_key}\n")
        told = (
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ConnectTimeout=30",
            "LogLevel=ERROR",
            "ServerAliveInterval=30",
        )
        files = (f"UserKnownHostsFile={known}", "GlobalKnownHostsFile=/dev/null", f"Port={self.port}")
        return ["-F", "none", "-i", str(self.image.login_key), *(f"-o{each}" for each in (*told, *files))]

    def _multiplexed(self) -> list[str]:
        shared = ("ControlMaster=auto", f"ControlPath={self.folder}/%r", "ControlPersist=300")
        return [*self.ssh_options(), *(f"-o{each}" for each in shared)]

    def ssh(self, command: str, *, user="root", check=True, input=None, timeout=300):  # noqa: A002 as subprocess.run
        """Run a shell command there; a CompletedProcess with text. Raises FleetError when it fails and `check` holds."""
        words = ["ssh", *self._multiplexed(), f"{user}@{self.address}", "--", command]
        given = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
        # Files, not pipes: the shared connection that ssh leaves behind would hold pipes open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = subprocess.run(words, stdout=out, stderr=err, text=True, timeout=timeout, **given).returncode
            done = subprocess.CompletedProcess(command, code, _text(out), _text(err))
        if check and code:
            raise FleetError(
                f"{self.name}: `{command}` failed ({code}): {(done.stderr or done.stdout).strip()[-2000:]}"
            )
        return done

    def read(self, path: str) -> str:
        return self.ssh(f"cat {shlex.quote(path)}").stdout

    def write(self, path: str, text: str, mode: str = "644") -> None:
        """Write a file there, with its folder; flushed to its disk."""
        there = shlex.quote(path)
        self.ssh(f"mkdir -p $(dirname {there}) && cat > {there} && chmod {mode} {there} && sync {there}", input=text)

    def put(self, source: Path, target: str) -> None:
        """Copy a file or a folder there."""
        words = ["scp", "-q", "-r", *self._multiplexed(), str(source), f"root@{self.address}:{target}"]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=300)

    def wait_for_ssh(self, seconds: float = BOOT_SECONDS) -> None:
        self._until("one can log in", lambda: self._greets() and not self.ssh("true", check=False).returncode, seconds)

    def _greets(self) -> bool:
        """Whether an SSH server answers: cheap to ask, also of a machine that is booting."""
        with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), 5) as there:
            return there.recv(16).startswith(b"SSH-")
        return False

    def hang_up(self) -> None:
        for user in ("root", "op", "nosudo"):
            if (self.folder / user).exists():
                words = ["ssh", *self._multiplexed(), "-O", "exit", f"{user}@{self.address}"]
                subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    # Failing readably

    def _until(self, told: str, holds, seconds: float = place.PATIENCE, every: float = 0.1):
        try:
            return until(f"{self.name}: {told}", lambda: self._alive() and holds(), seconds, every)
        except FleetError as error:
            raise FleetError(f"{error}\n{self._last_words()}") from None

    def _alive(self) -> bool:
        if self.running():
            return True
        if self._process and self._process.poll() == CRASHED:
            return False  # it is started again
        raise FleetError(f"{self.name}: QEMU ended")

    def _last_words(self) -> str:
        """The end of what QEMU and the console said."""
        said = []
        for file in ("qemu.log", "serial.log"):
            path = self.folder / file
            lines = path.read_text(errors="replace").splitlines()[-30:] if path.exists() else []
            said += [f"--- the end of {path}", *lines]
        return "\n".join(said)


def _text(file) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
