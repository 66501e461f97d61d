"""A document of each source with one planted fault, made by the product from recorded or synthetic input.

`python -m tests.support.sources` writes them to tests/data/conclusions.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.support.late_jobs import QuietJob
from benchmarks.support.slow_fleet import SlowFleet, searched
from nodetune.api.conclusion import REPAIR, Conclusion, Examination, Examined, Judged
from nodetune.api.device import Device
from nodetune.api.model import Absent, Each, HostFacts, HostResult, Value
from nodetune.audit import document as audit_document
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.cli.commands import history as history_command
from nodetune.facts import document as facts_document
from nodetune.foundation import json_document, paths
from nodetune.guard.deploy import document as guard_document
from nodetune.guard.deploy import node_state
from nodetune.guard.deploy import status as guard_status
from nodetune.guard.deploy.paths import POLICY
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.history.history import History
from nodetune.history.points import DAY
from nodetune.history.snapshot import Sorter
from nodetune.jobs.late_ranks import analysis
from nodetune.jobs.late_ranks import document as ranks_document
from nodetune.jobs.late_ranks import run as ranks_run
from nodetune.jobs.late_ranks.request import SlowRequest
from nodetune.jobs.watch import document as watch_document
from nodetune.provision.readmit import conclude as readmit_conclude
from nodetune.provision.readmit import document as readmit_document
from nodetune.provision.readmit import replaced_parts
from nodetune.provision.readmit.readmission import Readmission, StageOutput
from nodetune.provision.record import failed
from nodetune.verify import document as verify_document
from nodetune.verify.evaluate import again, judge
from nodetune.verify.find_slow import document as slow_document
from nodetune.verify.find_slow.run import SlowSearch
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest
from tests.support import ras_server, verify_records, watched

DATA = Path(__file__).parents[1] / "data"
FOLDER = DATA / "conclusions"
NOW = 20_700 * DAY + 43_200
"""The time of all documents."""


@dataclass(frozen=True)
class Planted:
    """What must arrive at each consumer. `command`: the next one with `-i prod`."""

    fault: str
    hosts: tuple[str, ...]
    severity: str
    command: str
    device: str = ""


PLANTED = {
    "reach": Planted("host-not-reached", ("gpu01",), "medium", "nodetune audit -i prod -l gpu01"),
    "audit": Planted("gpu-row-remap-failed", ("gpu02",), "critical", "nodetune explain gpu-row-remap-failed", "GPU3"),
    "verify": Planted(
        "figure-below-target", ("gpu03",), "high", "nodetune verify -i prod -l gpu03 --only gpu_copy --gpu 2", "GPU2"
    ),
    "find-slow": Planted(
        "path-slow",
        ("gpu-005", "gpu-006"),
        "high",
        "nodetune verify -i prod -l 'gpu-[005-006]' --suite nccl --multi-node",
        "path gpu-005 - gpu-006",
    ),
    "late-ranks": Planted("rank-late", ("gpu04",), "medium", "nodetune audit -i prod -l gpu04"),
    "ras": Planted("rank-behind", ("gpu06",), "high", "nodetune audit -i prod -l gpu06", "GPU1"),
    "watch": Planted("gpu-idle", ("gpu07",), "low", "nodetune watch -i prod -l gpu07", "GPU0"),
    "trend": Planted(
        "part-degrading", ("gpu08",), "medium", "nodetune history gpu08 gpu.pcie_replay_counter/GPU3", "GPU3"
    ),
    "episodes": Planted("fault-survives-reboots", ("gpu09",), "high", "nodetune report -i prod gpu09", "GPU3"),
    "guard": Planted("node-held-by-guard", ("gpu10",), "critical", "nodetune readmit -i prod gpu10"),
    "readmit": Planted("part-gone", ("gpu11",), "critical", "nodetune readmit -i prod gpu11", "GPU1"),
}


def _reach() -> Any:
    return audit_document.audit([HostResult("gpu01", "unreachable", "no route to host")])


def _audit() -> Any:
    """The recorded machine with four H200s, one with a row that could not be remapped."""
    data = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
    data["facts"]["gpu.remapped_rows"]["each"]["GPU3"]["value"]["failure"] = True
    facts = facts_document.from_data({**data, "host": "gpu02"})
    selection = Selection(select=("gpu-row-remap-failed", "gpu-ecc-off"))
    return audit_document.audit(Auditor(selection).judged(HostResult("gpu02", "ok", facts=facts))[:1])


def _verify() -> Any:
    """Eight GPUs of which one copies from far memory at half the speed of the others."""
    every = [each for each in verify_records.whole() if each["measurement"] == "gpu_copy" and each["metric"] == "h2d"]
    slow = next(each for each in every if each["subject"] == "GPU2" and each["about"]["local"] is False)
    records = [{**each, "samples": [26.0] * 5} if each is slow else each for each in every]
    machine = verify_records.h200("gpu03")
    verdicts = judge(verify_records.read(records, "gpu03"), {"gpu03": machine})
    twice = tuple(again(each, each.figure) if each.status == "short" else each for each in verdicts)
    measured = HostVerification("gpu03", "ok", "", machine, twice)
    return verify_document.document([measured], SuiteRequest(only=("gpu_copy",)), "-i prod")


def _find_slow() -> Any:
    fleet = SlowFleet(8, random.Random("a slow path"))
    fleet.plant("path", 0.5)
    return slow_document.document(SlowSearch(fleet.fleet, searched(fleet)), ["-i", "prod"])


def _late_ranks() -> Any:
    job = QuietJob("812", ["gpu04", "gpu05"], random.Random(1), layout="one", slow={("gpu04", 3): 0.1}).job()
    return ranks_document.document(analysis.find_late_ranks([job]))


def _ras() -> Any:
    """NCCL's own answer of a job with a rank that stays behind."""
    answer = (DATA / "recordings" / "ras" / "behind.json").read_text().replace("gpu001", "gpu06")
    with ras_server.serving(answer) as service:
        return ranks_document.document(ranks_run.run(SlowRequest(ras=f"127.0.0.1:{service.port}"), lambda _: None))


def _watch() -> Any:
    """Two recorded H200s, of which one computes."""
    return watch_document.document([watched.judged(watched.facts("h200-x2", "idle+fp32"), "gpu07")])


def _trend() -> Any:
    """A fortnight in which the PCIe replays of a GPU double each day."""
    with tempfile.TemporaryDirectory() as folder, History(f"{folder}/x.db") as history:
        sorter = Sorter()
        for day in range(14):
            errors = {f"GPU{number}": Value(2 ** max(0, day - 4) * 10 * (number == 3)) for number in range(4)}
            at = NOW - (13 - day) * DAY
            facts = HostFacts("gpu08", {"gpu.pcie_replay_counter": Each(errors)}, {"time": at})
            history.record([sorter.look(facts)])
            history.daily(at)
        return _history(history)


def _episodes() -> Any:
    """A lost GPU that was there again after each of two reboots."""
    lost = Conclusion("gpu-lost", "audit", ("gpu09",), "critical", "A GPU is lost", NOW - 9000,
                      Device("GPU3", "0000:61:00.0", serial="1650"), who=REPAIR)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, History(f"{folder}/x.db") as history:
        sorter = Sorter()
        for number, ago in enumerate((DAY, 7200, 3600)):
            facts = {"host.boot_id": Value(str(number))}
            history.record([sorter.look(HostFacts("gpu09", facts, {"time": NOW - ago}))])
        for at in (NOW - 9000, NOW - 1800):
            looked = Examination("audit", "gpu09", at, "0.3.0", (Judged("gpu-lost"),))
            history.conclude(Examined((lost,), (looked,)))
        history.judge_episodes(NOW)
        return _history(history)


def _history(history: History) -> Any:
    written: list[str] = []
    history_command._fleet(history, history.trends(), "json", SimpleNamespace(write=written.append))  # type: ignore[arg-type]
    return json.loads("".join(written))


def _guard() -> Any:
    node = SlurmNode(
        "NodeName=gpu10 State=IDLE+DRAIN Reason=nodetune: gpu-lost: GPU0 is lost [root@2026-11-21T10:00:00]"
    )
    texts = {node_state.HEARTBEAT: f"{NOW} 7 fail: gpu-lost: GPU0 is lost\n"}
    facts = {f"file.{path}": Value(text) for path, text in texts.items()}
    facts[f"file.{POLICY}"] = Absent("no such file")  # type: ignore[assignment]
    found = guard_status.of(node, HostResult("gpu10", "ok", facts=HostFacts("gpu10", facts)))
    return json.loads(guard_document.status([found]))


def _readmit() -> Any:
    def facts(**serials: str) -> HostFacts:
        return HostFacts("gpu11", {"gpu.serial": Each({place: Value(serial) for place, serial in serials.items()})})

    before, after = facts(GPU0="1650", GPU1="1651"), facts(GPU0="1650")
    inventory = replaced_parts.against(before, after)
    concluded = readmit_conclude.concluded("gpu11", inventory, after, NOW)
    found = Readmission("gpu11")
    found.add("inventory", StageOutput(failed("gone: GPU GPU1 (1651)", 1), {}, concluded, after, inventory))
    return readmit_document.document(found)


MAKERS: dict[str, Callable[[], Any]] = {
    "reach": _reach,
    "audit": _audit,
    "verify": _verify,
    "find-slow": _find_slow,
    "late-ranks": _late_ranks,
    "ras": _ras,
    "watch": _watch,
    "trend": _trend,
    "episodes": _episodes,
    "guard": _guard,
    "readmit": _readmit,
}


def made(source: str) -> dict[str, Any]:
    """Return the document that a source makes now, as of NOW."""
    told: dict[str, Any] = json.loads(json_document.text(MAKERS[source]()))
    if "time" in told:
        told["time"] = NOW
    for each in told["conclusions"]:
        each["at"] = NOW
    for each in told["examined"]:
        each["hosts"] = dict.fromkeys(each["hosts"], NOW)
    return told


def saved(source: str) -> dict[str, Any]:
    """Return the document in tests/data/conclusions."""
    told: dict[str, Any] = json.loads((FOLDER / f"{source}.json").read_text())
    return told


def main() -> None:
    for source in MAKERS:
        (FOLDER / f"{source}.json").write_text(json_document.text(made(source)))


if __name__ == "__main__":
    main()
