"""The frozen machine from which others are resumed: booted once through GRUB, set up, and stopped with all its memory."""

import shlex
import shutil
from pathlib import Path

from tests.machines import image, place, qemu
from tests.machines.image import Image
from tests.machines.machine import BOOT_SECONDS, Machine
from tests.machines.place import HERE, FleetError, until
from tests.machines.qmp import Monitor

SETTLE = """
systemctl cancel
systemctl reset-failed
update-grub 2>/dev/null
python3 -c 'import asyncio, base64, json, subprocess, tempfile, zipfile'
systemctl is-system-running --wait || { systemctl --failed; exit 1; }
swapoff -a && swapon -a
sync && echo 3 > /proc/sys/vm/drop_caches && sync
"""
"""Nothing waits any longer for /data, whose drive comes later. GRUB's menu is then the one that update-grub writes: no later run of it finds anything to change."""


def ensure() -> Image:
    """The image with its template: frozen now if there is none for this QEMU and these devices."""
    made = image.ensure()
    if _found(made) != _key():
        with place.locked(place.folder() / "freezing"):
            if _found(made) != _key():
                _make(made)
                (made.folder / "template/key").write_text(_key())
    return made


def _found(made: Image) -> str:
    path = made.folder / "template/key"
    return path.read_text() if path.exists() else ""


def _key() -> str:
    version = image.run("qemu-system-x86_64", "--version")
    return place.digest(HERE / "qemu.py", Path(__file__), place.ACCELERATION, version)


def _make(made: Image) -> None:
    folder, machine = made.folder / "template", Machine(place.TEMPLATE, made)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    machine.create_disks({"root": "base.raw", "swap": "swap.raw"})
    try:
        machine.launch(*qemu.memory(folder / "frozen", keep=True), cache="unsafe")
        machine.wait_for_ssh()
        machine.ssh(SETTLE, timeout=BOOT_SECONDS)
        _freeze(machine, folder / "frozen.state")
        machine.disks["root"].rename(folder / "root.qcow2")
    finally:
        machine.stop()


def _freeze(machine: Machine, state: Path) -> None:
    """Stop the machine and save the state of its devices; its memory already lies in files."""
    machine.hang_up()
    with Monitor(machine.folder / "qmp") as ask:
        ask("stop")
        ask("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])
        ask("migrate", uri=f"exec:cat > {shlex.quote(str(state))}")
        until("the state is saved", lambda: _saved(ask("query-migrate")))
        ask("quit")
    until("QEMU ends", lambda: not machine.running())


def _saved(progress: dict) -> bool:
    if progress.get("status") == "failed":
        raise FleetError(f"QEMU cannot save its state: {progress.get('error-desc', 'no reason given')}")
    return progress.get("status") == "completed"
