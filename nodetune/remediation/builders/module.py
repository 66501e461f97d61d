"""Kernel modules: loaded now, and at boot by modules-load.d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import among, named, own_file
from nodetune.remediation.host_view import HostView, UnfixableError

LOADS_ONLY_WITH = {"nvidia_peermem": "ib_core"}
"""Symbols that a loadable module file needs: without them, each boot would report a failed unit."""

NEEDS = tuple(f"modules.depends.{name}" for name in LOADS_ONLY_WITH)


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for fix in fixes:
        name = named(fix.target, "module", r"[\w-]+")
        _require(name, host)
        path = f"/etc/modules-load.d/nodetune-{name}.conf"
        change = own_file(host, path, "modules-load.conf.j2", {name: "loaded"}, among([name], "loaded"))
        made.append({"change": "module", "name": name, "loaded": True, "checks": host.checks(fix)})
        made.append(change | {"checks": host.checks(fix)})
    return made


def _require(name: str, host: HostView) -> None:
    """Raise UnfixableError for a module that the running kernel lacks, or whose file was built without its use."""
    needed = LOADS_ONLY_WITH.get(name)
    if needed is None:
        return
    depends = host.get(f"modules.depends.{name}")
    if depends is None:
        raise UnfixableError(f"the running kernel has no module {name}: install the driver package that contains it")
    if needed not in depends:
        raise UnfixableError(
            f"{name} was built without {needed}, so it does not load: install RDMA drivers that offer peer memory "
            "(MLNX_OFED, DOCA-OFED), rebuild the NVIDIA driver, then plan again"
        )
