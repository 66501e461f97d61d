"""The figure that shows the setting of a check: what it was with the setting wrong and right, and the command that measures it here."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from nodetune import data
from nodetune.api.model import Check
from nodetune.verify import catalogue
from nodetune.verify.catalogue import MeasurementSpec
from nodetune.verify.suites import SuiteRequest

Row = Mapping[str, Any]


def rows() -> Sequence[Row]:
    """Return the rows of measured.yml."""
    found: Sequence[Row] = data.table("measured")["rows"]
    return found


def row_of(check: Check, among: Sequence[Row]) -> Row | None:
    """Return the first row that has a check."""
    name = f"{check.area}/{check.id}"
    return next((row for row in among if any(fnmatchcase(name, each) for each in row["checks"])), None)


def moved(check: Check) -> list[Row]:
    """Return the figures that were measured with the setting of a check wrong and right."""
    row = row_of(check, rows()) or {}
    return [each for each in row.get("moved", ()) if any(fnmatchcase(check.id, one) for one in each["ids"])]


def told(check: Check) -> list[tuple[str, str]]:
    """Return headings and texts about the figure of a check's setting; nothing for a check that does not come with nodetune."""
    row = row_of(check, rows())
    if row is None:
        return []
    seen = moved(check)
    if not seen and row.get("unmeasured"):
        return [("Figure", f"none. {row['unmeasured']}")]
    names = list(dict.fromkeys(each["figure"].split()[0] for each in seen)) or row["measurement"]
    none = f"{', '.join(names)}: not measured with this setting wrong and right. {row.get('unmoved', '')}".rstrip()
    return [("Figure", "; ".join(map(_seen, seen)) or none), ("Measure it", "; ".join(_commands(check, names)))]


def _seen(each: Row) -> str:
    times = f"{each['times']} times (99 %)" if "times" in each else f"no difference seen: {each['unseen']}"
    return f"{each['figure']} {each['wrong']} with the setting wrong, {each['right']} right: {times}; {each['setting']}"


def _commands(check: Check, names: Sequence[str]) -> Iterator[str]:
    """Yield the command that measures before and after the fix, and the one for what `apply` does not measure."""
    specs = [catalogue.of(name) for name in names]
    around = [each for each in specs if check.remedy.kind != "manual" and not each.runs[0].startswith("--only")]
    if around:
        suite = "full" if any(each.suites and "quick" not in each.suites for each in around) else "quick"
        pairs = any(each.scope == "pair" for each in around)
        asked = SuiteRequest(suite, disk=_folder(around), pairs=pairs).words
        words = ["apply", *_hosts(around), "--select", check.id, "--verify", *asked]
        yield shlex.join(["nodetune", *words, *(["--canary", "2"] if pairs else [])])
    if alone := [each for each in specs if each not in around]:
        asked = SuiteRequest("full", tuple(each.name for each in alone), disk=_folder(alone)).words
        yield shlex.join(["nodetune", "verify", *_hosts(alone), *asked, "--repeat", "5"])


def _folder(specs: Sequence[MeasurementSpec]) -> str:
    return "DIR" if any(each.takes_folder for each in specs) else ""


def _hosts(specs: Sequence[MeasurementSpec]) -> list[str]:
    several = (each.scope == "pair" or (each.scope == "collective" and each.by_name) for each in specs)
    return ["-i", "INVENTORY"] if any(several) else []
