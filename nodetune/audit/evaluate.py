"""(checks, facts) → findings. Pure: nothing here opens, runs or connects to anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodetune.api import GPU, predicates
from nodetune.api.derived import lookup, raw_needs
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError, value_of
from nodetune.api.model import Absent, Check, Each, Fact, Finding, Fix, HostFacts, Unread, Value
from nodetune.audit import boot_units, log_gap
from nodetune.facts.memo import FORMS, ResultCache, identities
from nodetune.foundation import stats
from nodetune.foundation import text as plain_text

ORDER = {"fail": 0, "unknown": 1, "pass": 2, "skip": 3}
"""The verdict over several subjects: the first of these that any subject has."""

MALFORMED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError)
"""Exceptions that a fact of an unexpected shape may cause."""

SIMPLE = (str, int, float)
"""Types of values that are judged once for all subjects and hosts: most values of a fleet are equal."""

MAX_LENGTH = 4000
"""Longest text of a finding: hosts with hundreds of devices fit, and a hostile host cannot flood the report."""

NONE: Mapping[str, str] = {}


def declared(check: Check) -> set[str]:
    """Return every fact name that judging the check may need."""
    names = {
        *check.needs,
        *boot_units.needs(check),
        *log_gap.needs(check),
        *predicates.refs(check.accept),
        *predicates.refs(check.set),
    }
    for when in check.applies:
        names |= {when.fact} | predicates.refs(when.accept)
    ceiling = (check.ceiling, f"persisted.{check.ceiling}") if check.ceiling else ()
    return names | {name for name in (check.fact, check.remedy.persisted, *ceiling) if name}


def required_facts(checks: Iterable[Check]) -> set[str]:
    """Return the facts that a probe must collect for these checks."""
    return raw(name for check in checks for name in declared(check))


def raw(names: Iterable[str]) -> set[str]:
    """Replace derived facts by the collected facts that they are computed from."""
    return set().union(*(raw_needs(name) for name in names), set())


def judge(check: Check, host: HostFacts) -> Finding:
    """Return the finding of one check on one host."""
    return PreparedCheck(check).judge(host)


class PreparedCheck:
    """A check prepared for many hosts: everything that does not depend on the host is computed once."""

    def __init__(self, check: Check, gates: bool = False) -> None:
        self.check = check
        self._gates = gates
        self._declared = frozenset(declared(check))
        self._verdicts = ResultCache(raw(self._declared))
        self._said: dict[tuple[str, ...], Finding] = {}
        self._of_values: dict[tuple[type, Any], tuple[str, str, str]] = {}
        self._accept = None if check.accept is None else predicates.as_predicate(check.accept)
        self._refers = bool(predicates.refs(check.accept))
        self._sets_ref = bool(predicates.refs(check.set))
        self._wanted = "" if self._accept is None or self._refers else self._accept.describe(self._show)
        self._title = check.title
        self._cost, self._name = check.costs, check.name or check.remedy.target
        self._applies = [
            (when.fact, predicates.as_predicate(when.accept), bool(predicates.refs(when.accept)), when.otherwise)
            for when in check.applies
        ]

    def judge(self, host: HostFacts, known_as: Mapping[str, int] | None = None) -> Finding:
        """Return the finding on one host (`known_as`: its `identities`). Hosts with the same facts get the same object."""
        return self._verdicts.of(host, known_as or identities(host), self._judge_once)

    def _judge_once(self, host: HostFacts) -> Finding:
        return self.reading(host)[0]

    def reading(self, host: HostFacts) -> tuple[Finding, Iterable[str]]:
        """Judge, and return also which facts that took.

        Equal findings become one object: different facts mostly lead to a few findings.
        """
        view = FactsView(host, self._declared, lookup)
        found = self._judge(view)
        words = found.status, found.observed, found.wanted, found.reason
        if len(self._said) < FORMS:
            self._said.setdefault(words, found)
        known = self._said.get(words)
        return known if known is not None and known == found else found, view.read

    def _judge(self, view: FactsView) -> Finding:
        try:
            why_not = self._does_not_apply(view)
            if why_not:
                return self._finding("skip", reason=why_not)
            found = self._judge_fact(view, self._observe(view))
            gap = log_gap.reason(self.check, view) if found.status == "pass" else ""
            return self._finding("unknown", reason=gap) if gap else found
        except FactAbsentError as absent:
            return self._absent(view, str(absent))
        except FactUnreadError as unread:
            return self._finding("unknown", reason=str(unread))
        except MALFORMED as problem:
            # A host may send any shape of data; what a check cannot make sense of is no verdict, and no traceback.
            return self._finding(
                "unknown", reason=f"the facts have an unexpected shape: {plain_text.plain(repr(problem), 120)}"
            )

    def _does_not_apply(self, view: FactsView) -> str:
        if self._accept is None:
            return "this profile leaves it untouched"
        for name, accept, refers, otherwise in self._applies:
            fact = view.fact(name)
            if name == GPU.fact and isinstance(fact, Unread) and accept.test(self._gpus_told(view)):
                continue
            if isinstance(fact, Absent):
                return otherwise
            wanted = predicates.resolve(accept, view.__getitem__) if refers else accept
            if not wanted.test(value_of(name, fact)):
                return otherwise
        return ""

    def _gpus_told(self, view: FactsView) -> int:
        """Return the number of GPUs in the check's own facts: a recording of one tool may lack the total."""
        facts = [view.fact(name) for name in self._declared if name.startswith("gpu.")]
        return max((len(fact.of) for fact in facts if isinstance(fact, Each)), default=0)

    def _observe(self, view: FactsView) -> Fact:
        check = self.check
        if check.observe is None:
            return view.fact(check.fact or "")
        seen = check.observe(view)
        if isinstance(seen, (Value, Absent, Unread, Each)):
            return seen
        if isinstance(seen, dict):
            return Each(
                {
                    str(name): one if isinstance(one, (Value, Absent, Unread)) else Value(one)
                    for name, one in seen.items()
                }
            )
        return Value(seen)

    def _judge_fact(self, view: FactsView, fact: Fact) -> Finding:
        if isinstance(fact, Absent):
            return self._absent(view, fact.reason)
        if isinstance(fact, Unread):
            return self._finding("unknown", reason=fact.reason)
        if isinstance(fact, Value):
            return self._judge_value(view, fact.value)
        if isinstance(fact, Each):
            return self._judge_each(view, fact.of)
        raise TypeError(f"{self.check.id} observed {fact!r}, which is not a fact")

    def _absent(self, view: FactsView, reason: str) -> Finding:
        if self.check.absent == "fail":
            lacking = boot_units.lacking(self.check)
            if lacking:
                return replace(self._finding("fail", reason, self._wanted), manual=lacking)
            return self._failing(view, reason, self._wanted)
        return self._finding(self.check.absent, reason=reason)

    def _judge_value(self, view: FactsView, value: Any) -> Finding:
        accept, wanted = self._accept_for(view)
        if not accept.test(value):
            cap = self._cap(view)
            return self._failing(view, self._show(value), wanted, cap, reason=self._why(view, cap, value))
        lost = boot_units.lost_at_boot(self.check, view, accept.test, self._show)
        if lost:
            return self._failing(view, f"{self._show(value)} now", wanted, reason=lost)
        return self._finding("pass", observed=self._show(value), wanted=wanted)

    def _judge_each(self, view: FactsView, of: Mapping[str, Value | Absent | Unread]) -> Finding:
        verdicts = {subject: self._judge_subject(view, subject, fact) for subject, fact in of.items()}
        if not verdicts:
            return self._absent(view, "nothing of this kind on this host")
        status = min((its for its, _, _ in verdicts.values()), key=ORDER.__getitem__)
        chosen = {subject: seen for subject, (its, seen, _) in verdicts.items() if its == status}
        wanted = next(text for its, _, text in verdicts.values() if its == status)
        observed = plain_text.folded(chosen)
        if status == "fail":
            usual, odd = stats.odd_ones({subject: seen for subject, (_, seen, _) in verdicts.items()})
            cap = self._cap(view)
            why = self._why(view, cap, subjects=tuple(chosen))
            unread = tuple([subject for subject, (its, _, _) in verdicts.items() if its == "unknown"])
            found = self._failing(view, observed, wanted, cap, why, chosen)
            return replace(found, peers=len(of), odd=odd, usual=usual, unread=unread)
        lost = boot_units.argument_lost(self.check, view) if status == "pass" else ""
        if lost:
            return self._failing(view, f"{observed} now", wanted, reason=lost)
        if status == "pass":
            return replace(self._finding("pass", observed, wanted), peers=len(of))
        found = self._finding(status, reason=observed)
        return replace(found, subjects=chosen) if status == "unknown" else found

    def _judge_subject(self, view: FactsView, subject: str, fact: Value | Absent | Unread) -> tuple[str, str, str]:
        """Return (status, observed value or reason, wanted value) of one subject."""
        if not isinstance(fact, Value):
            return "skip" if isinstance(fact, Absent) else "unknown", fact.reason, ""
        if not self._refers and isinstance(fact.value, SIMPLE):
            key = type(fact.value), fact.value  # 1, 1.0 and True are equal
            known = self._of_values.get(key)
            if known is None:
                known = self._judge_one(view, subject, fact.value)
                if len(self._of_values) < FORMS:
                    self._of_values[key] = known
            return known
        return self._judge_one(view, subject, fact.value)

    def _judge_one(self, view: FactsView, subject: str, value: Any) -> tuple[str, str, str]:
        try:
            accept, wanted = self._accept_for(view, subject)
        except FactAbsentError as absent:
            return "skip", str(absent), ""
        except FactUnreadError as unread:
            return "unknown", str(unread), ""
        return "pass" if accept.test(value) else "fail", self._show(value), wanted

    def _accept_for(self, view: FactsView, subject: str | None = None) -> tuple[predicates.Predicate, str]:
        """Return the predicate with every reference resolved (for a subject: by its own value), and its description."""
        assert self._accept is not None  # noqa: S101  (`_does_not_apply` has answered)
        if not self._refers:
            return self._accept, self._wanted

        def for_subject(name: str) -> Any:
            fact = view.fact(name)
            if subject is None or not isinstance(fact, Each):
                return value_of(name, fact)
            if subject not in fact.of:
                raise FactAbsentError(f"{name} does not know {subject}")
            return value_of(f"{name} of {subject}", fact.of[subject])

        accept: predicates.Predicate = predicates.resolve(self._accept, for_subject)
        return accept, accept.describe(self._show)

    def _why(self, view: FactsView, cap: str, value: Any = None, subjects: tuple[str, ...] = ()) -> str:
        """Return what set the value, as far as known."""
        decides = boot_units.who_decides(self.check, view, value, self._show)
        return "; ".join(filter(None, (decides, self._cause(view, subjects), cap)))

    def _cause(self, view: FactsView, subjects: tuple[str, ...]) -> str:
        """Return the cause that the check finds. A fact that it cannot interpret costs the cause, not the verdict."""
        try:
            return self.check.cause(view, subjects) if self.check.cause else ""
        except (FactAbsentError, FactUnreadError, *MALFORMED):
            return ""

    def _cap(self, view: FactsView) -> str:
        """Return the kernel parameter that keeps the fix from reaching an accepted value; empty if none does."""
        value = view.readable(self.check.ceiling) if self.check.ceiling else None
        if type(value) is not int or self._accept_for(view)[0].test(value):
            return ""
        name = self.check.ceiling.removeprefix("sysctl.")
        placed = view.readable(f"persisted.{self.check.ceiling}") or {}
        by = f", set by {boot_units.place(placed)}" if placed.get("value") == value else ""
        return f"{name} = {value} caps it{by}"

    def _show(self, value: Any) -> str:
        return plain_text.value(value, self.check.unit)

    def _finding(self, status: str, observed: str = "", wanted: str = "", reason: str = "") -> Finding:
        """Make a finding. Its texts come from the host, so they are made safe to print and shortened here."""
        observed, wanted, reason = (plain_text.plain(text, MAX_LENGTH) for text in (observed, wanted, reason))
        words = self.check.id, status, self.check.severity, self._title, observed, wanted, reason
        return Finding(*words, gates=self._gates, repair=self.check.remedy.repair, cost=self._cost, name=self._name)

    def _failing(
        self,
        view: FactsView,
        observed: str,
        wanted: str,
        cap: str | None = None,
        reason: str = "",
        subjects: Mapping[str, str] = NONE,
    ) -> Finding:
        remedy, fix = self.check.remedy, None
        value = self._value_to_set(view)
        left_alone = self._left_alone(view, subjects)
        fixed = tuple(each for each in subjects if each not in left_alone) if remedy.per_subject else ()
        if left_alone:
            reason = "; ".join(filter(None, (reason, *(f"{each} manually: {why}" for each, why in left_alone.items()))))
        if remedy.kind != "manual" and value is not None and (fixed or not left_alone):
            where = (remedy.kind, remedy.target, value, remedy.disruption, remedy.file)
            cap = self._cap(view) if cap is None else cap
            ceiling = {"ceiling": {"sysctl": self.check.ceiling.removeprefix("sysctl."), "reason": cap}} if cap else {}
            fix = Fix(*where, fixed, self.check.unit, {**remedy.params, **ceiling})
        found = self._finding("fail", observed, wanted, reason or boot_units.why_not_set(self.check, view))
        lacks = "" if fix is None else boot_units.not_installed(self.check, view, value)
        return replace(found, subjects=subjects, fix=fix, manual="" if fix else remedy.steps, not_installed=lacks)

    def _left_alone(self, view: FactsView, subjects: Iterable[str]) -> dict[str, str]:
        """Return the failing subjects that the fix leaves alone, with the reason. Facts that are unknown leave all alone."""
        if self.check.left_alone is None:
            return {}
        try:
            left = self.check.left_alone(view)
        except (FactAbsentError, FactUnreadError, *MALFORMED) as problem:
            return dict.fromkeys(subjects, f"unknown: {plain_text.plain(str(problem), 120)}")
        return {each: left[each] for each in subjects if each in left}

    def _value_to_set(self, view: FactsView) -> Any:
        """Return the value that a fix would write, or None if its facts are unknown."""
        if not self._sets_ref:
            return self.check.set
        try:
            return predicates.resolve(self.check.set, view.__getitem__)
        except (FactAbsentError, FactUnreadError):
            return None
