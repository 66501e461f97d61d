"""systemctl daemon-reload may take the GPUs away from running containers.

Why it matters: Where systemd manages the containers' cgroups and the toolkit adds GPUs behind the engine's back (its
legacy mode), a reload, which any package update may do, applies device rules that know nothing of them. Programs then
fail with "Failed to initialize NVML: Unknown Error" until the container is started anew.
Confirm by hand: docker info | grep -i cgroup; ls -l /dev/char | grep nvidia
Side effects of the fix: The links need nothing restarted; they help containers that start after them.
Sources: https://github.com/NVIDIA/nvidia-docker/issues/1730 ;
https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227
"""

from nodetune.conditions import CONTAINERS, GPU_ON_PCI
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> list[str]:
    """The engines at risk. From 1.18 on (nvidia-cdi-refresh is there) the mode auto means CDI."""
    mode = facts["containers.toolkit"]["mode"]
    modern = mode == "auto" and facts.get("services.nvidia-cdi-refresh") is not None
    if facts["containers.dev_char_links"] or mode == "cdi" or modern:
        return []
    return [name for name, manages in _managed_by_systemd(facts).items() if manages]


def _managed_by_systemd(facts: View) -> dict[str, bool]:
    docker, containerd, crio = (facts.get(f"containers.{name}") for name in ("docker", "containerd", "crio"))
    driver = next((each for each in (docker or {}).get("exec-opts", []) if each.startswith("native.cgroupdriver=")), "")
    by_default = not driver and facts["containers.cgroup_v2"]
    return {
        "docker": docker is not None and (driver.endswith("=systemd") or by_default),
        "containerd": bool(containerd and containerd["systemd_cgroup"]),
        "crio": crio is not None and crio["cgroup_manager"] != "cgroupfs",
    }


CHECK = Check(
    needs=(
        "containers.toolkit",
        "containers.dev_char_links",
        "containers.docker",
        "containers.containerd",
        "containers.crio",
        "containers.cgroup_v2",
        "services.nvidia-cdi-refresh",
    ),
    observe=observe,
    accept=Empty("links in /dev/char, or CDI"),
    applies=(CONTAINERS, GPU_ON_PCI),
    remedy=manual(
        "nvidia-ctk system create-dev-char-symlinks --create-all, and the same at boot by a udev rule "
        '(ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks '
        '--create-all"); or let the engine use CDI'
    ),
    severity="medium",
)
