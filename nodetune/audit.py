"""(checks, facts) → findings. Pure: nothing here opens, runs or connects to anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from nodetune import expect, show
from nodetune.derived import raw_needs
from nodetune.model import Absent, Check, Each, Fact, Finding, Fix, HostFacts, Unread, Value
from nodetune.view import Missing, Unreadable, View, value_of

ORDER = {"fail": 0, "unknown": 1, "pass": 2, "skip": 3}


def declared(check: Check) -> set[str]:
    """Every fact name that judging the check may look at."""
    names = {*check.needs, *expect.refs(check.accept), *expect.refs(check.set)}
    names |= {when.fact for when in check.applies}
    names |= set().union(*(expect.refs(when.accept) for when in check.applies), set())
    names |= {name for name in (check.fact, check.remedy.persisted) if name}
    return names


def required_facts(checks: Iterable[Check]) -> set[str]:
    """The facts that a probe must collect for these checks."""
    return raw(name for check in checks for name in declared(check))


def raw(names: Iterable[str]) -> set[str]:
    """The collected facts behind these names: derived ones replaced by what they are computed from."""
    return set().union(*(raw_needs(name) for name in names), set())


def audit(checks: Iterable[Check], host: HostFacts) -> tuple[Finding, ...]:
    """One finding for each check."""
    return tuple(judge(check, host) for check in checks)


def judge(check: Check, host: HostFacts) -> Finding:
    """The verdict of one check on one host."""
    view = View(host, declared(check))
    try:
        why_not = _does_not_apply(check, view)
        if why_not:
            return _finding(check, "skip", reason=why_not)
        return _judge_observation(check, view, _observe(check, view))
    except Missing as absent:
        return _absent(check, str(absent))
    except Unreadable as unread:
        return _finding(check, "unknown", reason=str(unread))


def _does_not_apply(check: Check, view: View) -> str:
    if check.accept is None:
        return "this profile leaves it untouched"
    for when in check.applies:
        fact = view.fact(when.fact)
        if isinstance(fact, Absent):
            return when.otherwise
        accept = expect.as_predicate(expect.resolve(when.accept, view.__getitem__))
        if not accept.test(value_of(when.fact, fact)):
            return when.otherwise
    return ""


def _observe(check: Check, view: View) -> Fact:
    if check.observe is None:
        return view.fact(check.fact or "")
    seen = check.observe(view)
    if isinstance(seen, Value | Absent | Unread | Each):
        return seen
    return Each({str(name): _as_fact(one) for name, one in seen.items()}) if isinstance(seen, dict) else Value(seen)


def _as_fact(one: Any) -> Value | Absent | Unread:
    return one if isinstance(one, Value | Absent | Unread) else Value(one)


def _judge_observation(check: Check, view: View, fact: Fact) -> Finding:
    match fact:
        case Absent(reason):
            return _absent(check, reason)
        case Unread(reason):
            return _finding(check, "unknown", reason=reason)
        case Value(value):
            return _judge_value(check, view, value)
        case Each(of):
            return _judge_each(check, view, of)
    raise TypeError(f"{check.id} observed {fact!r}, which is no fact")


def _absent(check: Check, reason: str) -> Finding:
    if check.absent == "fail":
        wanted = "" if expect.refs(check.accept) else expect.as_predicate(check.accept).describe(_shower(check))
        return _failing(check, observed=reason, wanted=wanted, value=check.set)
    return _finding(check, check.absent, reason=reason)


def _accept_for(check: Check, view: View, subject: str | None = None) -> expect.Predicate:
    def lookup(name: str) -> Any:
        found = view[name]
        if subject is not None and isinstance(view.fact(name), Each):
            if subject not in found:
                raise Missing(f"{name} does not know {subject}")
            return found[subject]
        return found

    return expect.as_predicate(expect.resolve(check.accept, lookup))


def _judge_value(check: Check, view: View, value: Any) -> Finding:
    accept, text = _accept_for(check, view), _shower(check)
    wanted = accept.describe(text)
    if not accept.test(value):
        return _failing(check, text(value), wanted, expect.resolve(check.set, view.__getitem__),
                        reason=_who_decides(check, view))
    lost = _lost_at_boot(check, view, accept)
    if lost:
        return _failing(check, f"{text(value)} now", wanted, expect.resolve(check.set, view.__getitem__), reason=lost)
    return _finding(check, "pass", observed=text(value), wanted=wanted)


def _judge_each(check: Check, view: View, of: Any) -> Finding:
    text, verdicts, wanted = _shower(check), {}, ""
    for subject, fact in of.items():
        match fact:
            case Absent(reason):
                verdicts[subject] = ("skip", reason)
            case Unread(reason):
                verdicts[subject] = ("unknown", reason)
            case Value(value):
                accept = _accept_for(check, view, subject)
                wanted = accept.describe(text)
                verdicts[subject] = ("pass" if accept.test(value) else "fail", text(value))
    if not verdicts:
        return _absent(check, "nothing of this kind on this host")
    status = min((status for status, _ in verdicts.values()), key=ORDER.__getitem__)
    chosen = {subject: seen for subject, (its, seen) in verdicts.items() if its == status}
    observed = show.folded(chosen)
    if status == "fail":
        value = expect.resolve(check.set, view.__getitem__)
        return _failing(check, observed, wanted, value, subjects=chosen, siblings=len(of),
                        odd=odd_ones({subject: seen for subject, (_, seen) in verdicts.items()}))
    if status in ("unknown", "skip"):
        return _finding(check, status, reason=observed, subjects=chosen if status == "unknown" else {})
    return _finding(check, "pass", observed=observed, wanted=wanted, siblings=len(of))


def odd_ones(seen: dict[str, str]) -> tuple[str, ...]:
    """The subjects that differ from what at least three quarters of their siblings (four or more) agree on."""
    if len(seen) < 4:
        return ()
    common, count = Counter(seen.values()).most_common(1)[0]
    if count == len(seen) or count * 4 < len(seen) * 3:
        return ()
    return tuple(subject for subject, value in seen.items() if value != common)


def _persisted(check: Check, view: View) -> Any:
    """What the next boot sets: {value, file, line}, None when no file says, Unread when that is not known."""
    if check.remedy.persisted is None or check.set is None:
        return None
    fact = view.fact(check.remedy.persisted)
    return fact.value if isinstance(fact, Value) else fact if isinstance(fact, Unread) else None


def _lost_at_boot(check: Check, view: View, accept: expect.Predicate) -> str:
    persisted, text = _persisted(check, view), _shower(check)
    if isinstance(persisted, Unread):
        return ""
    if persisted is not None:
        if accept.test(persisted["value"]):
            return ""
        return f"the next boot sets {text(persisted['value'])}: {_place(persisted)}"
    default = check.remedy.boot_default
    if default is None or accept.test(default):
        return ""
    return f"no file keeps it: the next boot starts from {text(default)}"


def _who_decides(check: Check, view: View) -> str:
    persisted = _persisted(check, view)
    if persisted is None or isinstance(persisted, Unread):
        return ""
    return f"set by {_place(persisted)} ({_shower(check)(persisted['value'])})"


def _place(persisted: Any) -> str:
    line = persisted.get("line")
    return f"{persisted['file']} line {line}" if line else str(persisted["file"])


def _shower(check: Check) -> expect.Show:
    return lambda value: show.value(value, check.unit)


def _finding(check: Check, status: str, **more: Any) -> Finding:
    return Finding(check.id, status, check.severity, check.title, **more)


def _failing(check: Check, observed: str, wanted: str, value: Any, **more: Any) -> Finding:
    remedy = check.remedy
    fix = None
    if remedy.kind != "manual" and value is not None:
        fix = Fix(remedy.kind, remedy.target, value, remedy.disruption, remedy.file, remedy.params)
    return _finding(check, "fail", observed=observed, wanted=wanted, fix=fix, manual=remedy.steps, **more)


