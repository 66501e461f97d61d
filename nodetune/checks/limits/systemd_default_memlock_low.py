"""systemd gives services a small limit of locked memory by default.

Why it matters: Each service that is installed later (a model server, a user's own service) starts with 8 MiB, and RDMA
fails in it, until someone remembers to give it a limit of its own.
Confirm by hand: systemctl show --property=DefaultLimitMEMLOCK
Side effects of the fix: Every service may lock memory. Services get it at their next start.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd-system.conf.html
"""

from nodetune.conditions import RDMA
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import systemd_dropin
from nodetune.view import Missing, View


def observe(facts: View) -> object:
    limits = facts["services.default_limits"]
    if "memlock" not in limits:
        raise Missing("this systemd does not tell its default")
    return limits["memlock"]["soft"]


CHECK = Check(
    needs=("services.default_limits",),
    observe=observe,
    accept=Equals("unlimited"),
    set="infinity",
    applies=(RDMA,),
    unit="bytes",
    remedy=systemd_dropin("system.conf", "Manager", "DefaultLimitMEMLOCK", "daemon reload"),
    severity="low",
)
