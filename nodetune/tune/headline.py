"""The first words about a tuning: what was decided, why, and what would settle what is open. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodetune.foundation import text
from nodetune.statistics.thresholds import MIN_GAIN, TUNE_LEVEL
from nodetune.tune import confirm, study
from nodetune.tune.space import in_words

MAX_CASES = 6
ANOTHER = "-2.json"


@dataclass(frozen=True)
class Headline:
    """`state` and `reason` are the decision. `settle` is what would settle it, and empty if nothing is open."""

    state: str
    reason: str
    settle: str = ""


def headline(result: Mapping[str, Any]) -> Headline:
    """Return the first words about the document of a tuning (nodetune/tune/document.py)."""
    better = [tried for tried in result["confirmations"] if tried["refused"] and _gained(tried)]
    if result["state"] != study.NOTHING or not better:
        return Headline(text.plain(result["state"]), text.plain(result["reason"], 600))
    best = max(better, key=lambda tried: float(tried["gain"]))
    lost = [case for case in best["cases"] if f"{case['id']} is " in best["refused"]]
    open_ = [case for case in lost if case["interval"][1] > 0]
    cases = _cases(open_ or lost)
    how = "these may be worse" if open_ else "these are worse"
    reason = f"{in_words(best['setting'])}: {percent(best['gain'])}, but {how} (interval of 99 %): {cases}"
    if lost and all(case["id"].endswith(confirm.SINGLY) for case in lost):
        return Headline("nothing accepted", reason, confirm.LEAVES_OUT)
    if result["subject"] == "nccl" and result["provenance"].get("objective") == "bandwidth" and not open_:
        return Headline("nothing accepted", reason, confirm.BY_SIZE)
    return Headline("nothing accepted", reason, _settle(result, best) if len(open_) == len(lost) else "")


def _gained(confirmation: Mapping[str, Any]) -> bool:
    """Return whether a setting was refused only for what it may make worse."""
    return bool(confirmation["gain"] >= MIN_GAIN and confirmation["p"] <= TUNE_LEVEL)


def _cases(cases: list[Mapping[str, Any]]) -> str:
    named = [f"{text.plain(case['id'])} {interval(case['interval'])} %" for case in cases[:MAX_CASES]]
    more = [f"and {len(cases) - MAX_CASES} more"] if len(cases) > MAX_CASES else []
    return ", ".join((*named, *more))


def _settle(result: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    words = (f"--parameter {text.plain(name)}" for name in best["setting"]) if result["subject"] == "nccl" else ()
    again = " ".join(("the same command with", *words, f"--save tuning-{result['subject']}{ANOTHER}"))
    return "; ".join((f"{again}, on a drained host with steady CPU clocks", *_in_a_job(result, best)))


def _in_a_job(result: Mapping[str, Any], best: Mapping[str, Any]) -> Iterator[str]:
    """Yield how a job decides instead: variables of NCCL need no change of a host."""
    if result["subject"] == "nccl":
        yield f"or compare the step time of your job with and without {in_words(best['setting'])}"


def resolved(result: Mapping[str, Any]) -> str:
    """Return the smallest difference that each case would show, where nothing was confirmed: `all_reduce 1 MiB ±1.2 %`."""
    known = result.get("resolved", {}) if result["state"] == study.NOTHING and not result["confirmations"] else {}
    return ", ".join(f"{text.plain(case)} ±{100 * half_width:.1f} %" for case, half_width in known.items())


def percent(fraction: float) -> str:
    """Return a gain in per cent, with its sign."""
    return f"{100 * fraction:+.1f} %"


def interval(ends: list[float]) -> str:
    """Return an interval of gains in per cent."""
    return f"{100 * ends[0]:+.1f} to {100 * ends[1]:+.1f}"
