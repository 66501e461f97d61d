"""Hosts of one kind are alike: a check judges a host again only if a fact that it read is another one there. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodetune.api.model import Fact, Finding, HostFacts
from nodetune.audit.evaluate import PreparedCheck, raw
from nodetune.facts.memo import identities
from nodetune.foundation import by_key

KIND = ("cpu.model", "gpu.names", "host.kernel")
"""Hosts with the same of these are compared with the first of them. It costs only time where they have little in common."""

MAX_KEPT = 32
"""So many kinds are kept. Real fleets have a few."""


class _Model(NamedTuple):
    """The first host of a kind: its facts, its findings, and fact → the numbers of the checks that read it."""

    facts: Mapping[str, Fact]
    findings: tuple[Finding, ...]
    readers: Mapping[str, Sequence[int]]


class CheckEvaluator:
    """Judges many hosts by the same checks."""

    def __init__(self, checks: Sequence[PreparedCheck]) -> None:
        self._checks = checks
        self._models: dict[tuple[int, ...], _Model] = {}

    def audit(self, host: HostFacts) -> tuple[Finding, ...]:
        """Return one finding for each check."""
        known_as = identities(host)
        if host.about.get("failed"):  # it says why facts are missing
            return tuple(check.judge(host, known_as) for check in self._checks)
        kind = tuple(known_as.get(name, 0) for name in KIND)
        if kind not in self._models:
            if len(self._models) >= MAX_KEPT:
                self._models.clear()
            self._models[kind] = self._model(host)
        model = self._models[kind]
        others = [name for name, fact in host.facts.items() if model.facts.get(name) is not fact]
        others += model.facts.keys() - host.facts.keys()
        findings = list(model.findings)
        for number in {number for name in others for number in model.readers.get(name, ())}:
            findings[number] = self._checks[number].judge(host, known_as)
        return tuple(findings)

    def _model(self, host: HostFacts) -> _Model:
        seen = [check.reading(host) for check in self._checks]
        readers = by_key((name, number) for number, (_, read) in enumerate(seen) for name in raw(read))
        return _Model(host.facts, tuple([found for found, _ in seen]), readers)
