"""Keys of Docker's daemon.json: merged into what is there; Docker reads these only when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named
from nodetune.remediation.host_view import HostView, UnfixableError

PATH = "/etc/docker/daemon.json"
NEEDS = ("services.docker",)


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    unit = host.get("services.docker")
    if not unit:
        raise UnfixableError(
            f"no docker.service on this host (a snap, or rootless?): set {', '.join(fix.target for fix in fixes)} in "
            "the daemon.json of the running Docker, and restart it"
        )
    made: list[dict[str, Any]] = [
        {
            "change": "edit",
            "path": PATH,
            "how": "json",
            "with": {"keys": {named(fix.target, "key of daemon.json", r"[\w-]+"): fix.value}},
            "checks": host.checks(fix),
        }
        for fix in fixes
    ]
    if unit["active"] == "active":
        host.note("Docker restarts: its containers stop, unless daemon.json says live-restore.")
        made.append({"change": "run", "run": "restart docker.service"})
    return made
