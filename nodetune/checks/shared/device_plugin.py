"""The Kubernetes device plugin of the GPUs."""

from nodetune.api import FactsView

DEVICES = "kubernetes.devices"


def has_found_gpus(facts: FactsView) -> bool:
    """Return whether GPUs are registered with the kubelet: pods get them in the plugin's way, whatever else is installed.

    The plugin of GKE mounts the driver itself and needs neither a container runtime called nvidia nor the toolkit.
    """
    return any(name.startswith("nvidia.com/") and count for name, count in facts.readable(DEVICES, {}).items())
