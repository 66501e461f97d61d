"""Machines of tests/machines without a driver, whose packages come from a server of this computer.

repositories = build.ready(kernel.of_image())
with Server(repositories) as server:
    bare.make(machine, repositories)
    bare.use(machine, repositories, server, "second", "distribution")
"""

from pathlib import Path

from tests.support.packages.serve import Server

FOLDER = "/root/stand-in"
KEY = "/etc/apt/keyrings/stand-in.asc"


def make(machine, repositories: Path, *, switches: bool = True) -> None:
    """Take away what plays the driver there. `switches`: pretended NVSwitches, now and after each boot."""
    machine.put(repositories / "machine", FOLDER)
    machine.ssh(f"sh {FOLDER}/bare.sh {'switches' if switches else ''}")


def use(machine, repositories: Path, server: Server, *names: str) -> None:
    """These repositories, and no other, are the machine's own, as if a person had set them up."""
    machine.write(KEY, (repositories / "key.asc").read_text())
    lines = [f"deb [signed-by={KEY}] {server.machines_url}/apt/{name} /\n" for name in names]
    machine.write("/etc/apt/sources.list", "".join(lines))
    machine.ssh("rm -f /etc/apt/sources.list.d/*; apt-get -q update")


def fail(machine, *packages: str) -> None:
    """The next installation of these packages fails in their postinst; none: no more."""
    machine.write("/etc/nodetune-stand-in/fail", "".join(f"{package}\n" for package in packages))


def without_headers(machine, *, missing: bool = True) -> None:
    """As where the kernel has no headers: DKMS builds nothing, says so, and the installation continues."""
    machine.ssh(
        f"mkdir -p /etc/nodetune-stand-in && {'touch' if missing else 'rm -f'} /etc/nodetune-stand-in/no-headers"
    )
