"""A tuning as rows for spreadsheets, and in Prometheus' text format: what was confirmed, and what the screening resolved."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from nodetune.report import rows
from nodetune.report.prometheus import Sample, label, write_samples
from nodetune.tune import study
from nodetune.tune.space import in_words

HEAD = ("subject", "setting", "status", "case", "default", "tuned", "unit", "gain", "low", "high", "p", "reason")
OBJECTIVE = "objective"
HELP = {
    "timestamp_seconds": "Time when this tuning ended.",
    "state": "1 for the state of this tuning, 0 for the others.",
    "gain_ratio": "Gain of a confirmed setting over the default, by case and for the objective: 0.01 is one per cent.",
    "resolution_ratio": "Half of the 99 % interval of such a gain, or of the screening where nothing was confirmed.",
    "value": "Median of the default and of a confirmed setting, by case, in its unit.",
}
STATES = (study.ACCEPTED, study.NOTHING, study.STOPPED, study.DISTURBED, study.NO_TIME)


def write_csv(found: Mapping[str, Any], stream: TextIO) -> None:
    """Write a row for each case of each confirmed setting, each resolved case of the screening and each setting left out."""
    rows.write(stream, "csv", HEAD, _rows(found))


def _rows(found: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    subject, nothing = str(found["subject"]), [""] * 7
    yield subject, in_words(found["setting"]), str(found["state"]), "", *nothing, str(found["reason"])
    for each in found["confirmations"]:
        named = subject, in_words(each["setting"]), "refused" if each["refused"] else "accepted"
        yield *named, OBJECTIVE, "", "", "", *_gain(each), str(each["refused"])
        for case in each["cases"]:
            sides = (_number(case[side]["median"]) for side in ("default", "tuned"))
            yield *named, str(case["id"]), *sides, str(case["unit"]), *_gain(case), ""
    for case, half in found.get("resolved", {}).items():
        yield subject, "", "screened", str(case), "", "", "", "", _number(-half), _number(half), "", ""
    for each in found["dropped"]:
        yield subject, in_words(each["setting"]), "left out", "", *nothing, str(each["reason"])


def _gain(found: Mapping[str, Any]) -> list[str]:
    return [_number(each) for each in (found["gain"], *found["interval"], found["p"])]


def _number(value: float) -> str:
    return f"{value:.6g}"


def write_prometheus(found: Mapping[str, Any], stream: TextIO) -> None:
    """Write the samples by metric."""
    hosts = found["provenance"].get("hosts")
    host = ",".join(map(str, hosts)) if isinstance(hosts, list) else ""
    labels = {"host": label(host), "subject": label(str(found["subject"]))}
    write_samples(stream, "nodetune_tune", HELP, _samples(found, labels))


def _samples(found: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Sample]:
    yield "timestamp_seconds", labels, found["time"]
    for state in STATES:
        yield "state", {**labels, "state": state}, state == found["state"]
    for each in found["confirmations"]:
        accepted = "no" if each["refused"] else "yes"
        setting = {**labels, "setting": label(in_words(each["setting"])), "accepted": accepted}
        for case in ({**each, "id": OBJECTIVE}, *each["cases"]):
            own = {**setting, "case": label(str(case["id"]))}
            yield "gain_ratio", own, case["gain"]
            yield "resolution_ratio", own, (case["interval"][1] - case["interval"][0]) / 2
            for side in ("default", "tuned") if "unit" in case else ():
                yield "value", {**own, "side": side, "unit": label(str(case["unit"]))}, case[side]["median"]
    if not found["confirmations"]:
        for name, half in found.get("resolved", {}).items():
            yield "resolution_ratio", {**labels, "case": label(str(name))}, half
