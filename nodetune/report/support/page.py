"""The page that a support engineer reads first: the machine, its parts, what fails, and what was tried. Pure."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from nodetune import __version__
from nodetune.api.model import Each, HostFacts, Value
from nodetune.facts import machine
from nodetune.foundation import text
from nodetune.history.kinds import FIGURES
from nodetune.report.support.gather import HISTORY_DAYS, Dossier

MAX_LINES = 12
"""Lines of a part of the page; the files have all."""

WIDTH = 11
GPU = {"serial": "serial", "bdf": "address", "vbios_version": "VBIOS", "inforom_image_version": "InfoROM"}
COUNTERS = (
    *("gpu.ecc_uncorrected_aggregate", "gpu.ecc_corrected_aggregate", "gpu.remapped_rows", "gpu.nvlink_errors"),
    *("gpu.pcie_replay_counter", "pci.aer", "memory.edac.uncorrected", "memory.edac.corrected", "block.smart"),
)
XIDS = ("xid.events", "xid.nvswitch")


def page(known: Dossier) -> str:
    """Return the page: at most some 80 lines."""
    at = text.sound_time(known.facts.about.get("time"))
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)) if at else ""
    lines = [f"Support bundle for {known.host}, by nodetune {__version__}", ""]
    for name, found in (
        ("read", [f"NOT READ: {known.problem}" if known.problem else when or "at an unknown time"]),
        ("machine", list(_machine(known.facts))),
        ("GPUs", list(_gpus(known.facts))),
        ("other parts", list(_parts(known.facts))),
        ("findings", [_finding(each) for each in sorted(known.findings, key=lambda each: each.rank)]),
        ("Xids", list(_xids(known.facts))),
        ("counters", list(_counters(known.facts))),
        (
            "figures",
            [
                f"{each.measurement} {each.metric} {each.subject}: {each.value:,.4g} {each.unit}"
                for each in known.figures
            ],
        ),
        (f"last {HISTORY_DAYS} d", list(_past(known.past))),
        ("tried", [_run(each) for each in known.tried]),
    ):
        lines += _part(name, found)
    return "".join(f"{text.plain(line, 300)}".rstrip() + "\n" for line in lines)


def _part(name: str, found: Sequence[str]) -> Iterator[str]:
    shown = [
        *found[:MAX_LINES],
        *([f"… and {len(found) - MAX_LINES} more: see the files"] if len(found) > MAX_LINES else []),
    ]
    for number, line in enumerate(shown or ["none known"]):
        yield f"{'' if number else name:{WIDTH}}  {line}"


def _value(facts: HostFacts, name: str) -> Any:
    fact = facts.facts.get(name)
    return fact.value if isinstance(fact, Value) else None


def _each(facts: HostFacts, name: str) -> dict[str, Any]:
    """Return the value of each subject; a fact without subjects has one without a name."""
    fact = facts.facts.get(name)
    if isinstance(fact, Each):
        return {subject: one.value for subject, one in fact.of.items() if isinstance(one, Value)}
    return {"": fact.value} if isinstance(fact, Value) else {}


def _machine(facts: HostFacts) -> Iterator[str]:
    dmi = {name.removeprefix("host.dmi."): _value(facts, name) for name in facts.facts if name.startswith("host.dmi.")}
    yield " ".join(str(dmi[name]) for name in ("sys_vendor", "product_name") if dmi.get(name)) or "unknown model"
    named = [f"{name.removesuffix('_serial')} {dmi[name]}" for name in dmi if name.endswith("serial") and dmi[name]]
    yield f"serial numbers: {', '.join(named) or 'none found (only root can read them)'}"
    yield f"BIOS {dmi.get('bios_version') or 'unknown'} of {dmi.get('bios_date') or 'unknown date'}"
    found = machine.of(facts)
    yield f"{found.title}; driver {found.driver or 'unknown'}; {found.cpu or 'unknown CPU'}"
    system = _value(facts, "host.os") or {}
    yield f"{system.get('name') or 'unknown system'}, kernel {_value(facts, 'host.kernel') or 'unknown'}"


def _gpus(facts: HostFacts) -> Iterator[str]:
    read = {told: _each(facts, f"gpu.{name}") for name, told in GPU.items()}
    for gpu in _each(facts, "gpu.names") or read["serial"]:
        yield f"{gpu}: " + ", ".join(f"{told} {of[gpu]}" for told, of in read.items() if gpu in of)


def _parts(facts: HostFacts) -> Iterator[str]:
    guids = _each(facts, "rdma.guid")
    for name, each in (_value(facts, "rdma.devices") or {}).items():
        yield f"NIC {name}: {each.get('board_id') or 'unknown board'}, firmware {each.get('firmware')}, GUID {guids.get(name, 'unknown')}"
    serials = _each(facts, "block.serial")
    for name, each in (_value(facts, "block.nvme") or {}).items():
        yield f"drive {name}: {each.get('model')}, firmware {each.get('firmware')}, serial {serials.get(name, 'unknown')}"
    for slot, serial in _each(facts, "memory.serial").items():
        yield f"memory {slot}: serial {serial}"


def _finding(found: Any) -> str:
    where = f" ({', '.join(list(found.subjects)[:4])})" if found.subjects else ""
    return f"{found.severity} {found.check}{where}: {found.observed or found.title}"


def _xids(facts: HostFacts) -> Iterator[str]:
    for name in XIDS:
        for each in _value(facts, name) or ():
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(text.sound_time(each.get("time"))))
            yield f"{at} Xid {each.get('xid')} {each.get('bdf')} ({text.count(each.get('count', 1), 'time')}): {each.get('text', '')}"


def _counters(facts: HostFacts) -> Iterator[str]:
    for name in COUNTERS:
        for subject, value in _each(facts, name).items():
            grown = _not_zero(value)
            if grown:
                yield f"{name} {subject}".rstrip() + f": {grown}"


def _not_zero(value: Any, path: str = "") -> str:
    """Return the numbers of a counter that are not zero, with the places of each."""
    if isinstance(value, dict):
        parts = (_not_zero(each, f"{path} {key}".strip()) for key, each in value.items())
        return ", ".join(filter(None, parts))
    return f"{path} {value:,}".strip() if isinstance(value, int | float) and value else ""


def _past(past: dict[str, Any]) -> Iterator[str]:
    for each in past.get("trends", ()):
        yield f"trend: {each.get('text')}"
    for each in reversed(past.get("changes", ())):
        if not str(each["leaf"]).startswith(FIGURES):
            yield f"{text.day(each['at'])} {each['leaf']}: {text.value(each['before'])} → {text.value(each['after'])}"
    for each in past.get("findings", ()):
        yield f"finding {each['finding']}: came {text.count(each['times'], 'time')}"


def _run(run: dict[str, Any]) -> str:
    changed = ", ".join(run["changed"][:4])
    return f"{run['started']} nodetune {run['command']} ({run['run']}): {changed or 'nothing recorded'}"
