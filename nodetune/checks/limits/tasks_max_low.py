"""systemd lets a service that starts work run too few tasks.

Why it matters: All processes and threads of all jobs or containers below the service count together. Where kernel.pid_max
is the old 32,768 systemd's default is about 4,900, and fork fails though ulimit -u is high.
Confirm by hand: systemctl show --property=TasksMax slurmd containerd docker
Side effects of the fix: None for running work: it applies at once after daemon-reload.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

UNITS = ("slurmd", "containerd", "docker", "crio")


def observe(facts: View) -> dict[str, int]:
    """No limit is as many as the kernel runs at all."""
    units = {name: facts.get(f"services.{name}") for name in UNITS}
    limits = {name: unit["tasks_max"] for name, unit in units.items() if unit and unit["active"] == "active"}
    return {
        name: facts["sysctl.kernel.threads-max"] if limit == "unlimited" else limit for name, limit in limits.items()
    }


CHECK = Check(
    needs=("sysctl.kernel.threads-max", *(f"services.{name}" for name in UNITS)),
    observe=observe,
    accept=AtLeast(65536),
    applies=(GPU_ON_PCI,),
    remedy=manual("For each of them: systemctl set-property NAME.service TasksMax=infinity"),
    severity="low",
)
