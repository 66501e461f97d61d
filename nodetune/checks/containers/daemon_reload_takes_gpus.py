"""systemctl daemon-reload may take the GPUs from running containers.

Why it matters: Some setups let systemd manage the containers' cgroups while the toolkit adds GPUs without the engine's
knowledge (its legacy mode). A daemon-reload, which any package update may trigger, then applies device rules that do
not include the GPUs. Programs fail with "Failed to initialize NVML: Unknown Error" until the container is restarted.
Confirm manually: docker info | grep -i cgroup; ls -l /dev/char | grep nvidia
Side effects of the fix: The links need no restart. They protect containers that start afterwards.
Sources: https://github.com/NVIDIA/nvidia-docker/issues/1730 ;
https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227
"""

from nodetune.api import CONTAINERS, GPU_ON_PCI, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> list[str]:
    """Return the engines at risk. In toolkit 1.18 and newer (which ships nvidia-cdi-refresh), mode auto means CDI."""
    mode = facts["containers.toolkit"]["mode"]
    modern = mode == "auto" and facts.get("services.nvidia-cdi-refresh") is not None
    if facts["containers.dev_char_links"] or mode == "cdi" or modern:
        return []
    return [name for name, manages in _managed_by_systemd(facts).items() if manages]


def _managed_by_systemd(facts: FactsView) -> dict[str, bool]:
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
        "Run nvidia-ctk system create-dev-char-symlinks --create-all, and do the same at boot with a udev rule "
        '(ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks '
        '--create-all"); or configure the engine to use CDI.'
    ),
    severity="medium",
    name="GPU device links",
)
