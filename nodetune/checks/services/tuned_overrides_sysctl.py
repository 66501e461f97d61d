"""tuned and sysctl.d set a kernel parameter to different values.

Why it matters: With tuned's default (reapply_sysctl=1 in tuned-main.conf), the file wins when a profile is applied;
without it, tuned wins. Either way, someone reads the wrong file and believes it. A change made in one place is undone
from the other at the next boot or profile change.
Confirm manually: tuned-adm verify; grep reapply_sysctl /etc/tuned/tuned-main.conf
Side effects of the fix: The parameter follows the one remaining place.
Sources: https://github.com/redhat-performance/tuned (tuned-main.conf, plugin sysctl)
"""

from __future__ import annotations

from nodetune.api import Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.services._units import running


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    if not running(facts, ["tuned"]):
        raise FactAbsentError("tuned is not running")
    found = {
        each[
            "name"
        ]: f"{each['tuned']} in {each['tuned_file']}, {each['sysctl']} in {each['sysctl_file']}, now {each['running']}"
        for each in facts["services.tuned_conflicts"]
    }
    return found or []


CHECK = Check(
    needs=("services.tuned", "services.tuned_conflicts"),
    observe=observe,
    accept=Empty("one place for each parameter"),
    remedy=manual(
        "Decide on one place: remove the line from the sysctl.d file, or create a custom profile "
        "(/etc/tuned/SITE/tuned.conf with include=PROFILE and the wanted [sysctl] values) and: tuned-adm profile SITE"
    ),
    severity="low",
)
