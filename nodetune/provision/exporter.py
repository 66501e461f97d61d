"""DCGM's exporter, for sites that have it among their parts. Pure."""

from collections.abc import Mapping
from typing import Any

from nodetune.provision.facts import HostRefusedError, ProvisionFacts
from nodetune.provision.package_data import Needed

EXPORTER = "dcgm-exporter"
"""The part, and the name of its process."""

FACTS = ("services.processes",)


def check(seen: ProvisionFacts, parts: Mapping[str, Needed], installed: Mapping[str, Any]) -> None:
    """Raise HostRefusedError if an exporter from elsewhere runs there, such as a container: it has the port."""
    wanted = parts.get(EXPORTER)
    if wanted and not set(wanted.packages) & set(installed) and seen("services.processes", {}).get(EXPORTER):
        raise HostRefusedError(
            "a dcgm-exporter runs there that is not of NVIDIA's packages",
            "stop it, or remove dcgm-exporter from the parts of the site file",
        )
