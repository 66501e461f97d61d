"""The checks of a run that fixes what it finds."""

from __future__ import annotations

from nodetune.api.model import Check
from nodetune.audit.selection import Selection
from nodetune.remediation import plan


class PlanSelection(Selection):
    """A selection of checks that also asks for the facts that carrying out their fixes takes."""

    @property
    def added(self) -> tuple[Check, ...]:
        """The checks of the site file."""
        return self.site.add if self.site else ()

    def facts(self) -> set[str]:
        return super().facts() | plan.facts_for(check.remedy.kind for check in self.candidates)
