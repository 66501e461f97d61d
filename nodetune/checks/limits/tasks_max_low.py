"""systemd's TasksMax is too low.

Why it matters: All processes and threads of all jobs or containers under the service count together. Where
kernel.pid_max is the old 32,768, systemd's default is about 4,900. fork then fails although ulimit -u is high.
Confirm manually: systemctl show --property=TasksMax slurmd containerd docker
Side effects of the fix: None for running work. The change applies immediately after daemon-reload.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html
"""

from nodetune.api import GPU_ON_PCI, AtLeast, Check, FactsView, manual

UNITS = ("slurmd", "containerd", "docker", "crio")


def observe(facts: FactsView) -> dict[str, int]:
    """Return TasksMax of each active service. Unlimited means as many as the kernel can run."""
    units = {name: facts.get(f"services.{name}") for name in UNITS}
    limits = {name: unit["tasks_max"] for name, unit in units.items() if unit and unit["active"] == "active"}
    return {
        name: facts["sysctl.kernel.threads-max"] if limit == "unlimited" else limit for name, limit in limits.items()
    }


CHECK = Check(
    needs=("sysctl.kernel.threads-max", *(f"services.{name}" for name in UNITS)),
    observe=observe,
    accept=AtLeast(65536),
    ceiling="sysctl.kernel.threads-max",
    applies=(GPU_ON_PCI,),
    remedy=manual(
        "If the reason names kernel.threads-max, raise that: echo kernel.threads-max=131072 > /etc/sysctl.d/90-threads.conf && "
        "sysctl -p /etc/sysctl.d/90-threads.conf. Otherwise, for each service: systemctl set-property NAME.service TasksMax=infinity"
    ),
    severity="low",
)
