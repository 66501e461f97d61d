"""What a readmission concludes, and what the history keeps of it."""

import json
import tarfile

import pytest

from nodetune.api import conclusion_json
from nodetune.api.conclusion import Conclusion, Examination, Examined, Judged
from nodetune.api.model import Each, HostFacts, HostResult, Unread, Value
from nodetune.audit.selection import Selection
from nodetune.foundation.stage_output import Silent
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.history.closing import folded
from nodetune.history.history import History
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.provision.readmit import conclude, document, replaced_parts, run, stages
from nodetune.provision.readmit.preparation import Prepared
from nodetune.provision.readmit.readmission import Readmission, StageOutput
from nodetune.provision.readmit.request import ReadmitRequest
from nodetune.provision.record import DONE, StageResult, failed
from tests.support import documents


def facts(**serials):
    return HostFacts("g3", {"gpu.serial": Each({place: Value(serial) for place, serial in serials.items()})})


TWO = facts(GPU0="1650", GPU1="1651")
ONE = facts(GPU0="1650")


def readmitted(before, after, at=100):
    return conclude.concluded("g3", replaced_parts.against(before, after), after, at)


def test_a_part_without_a_successor_is_a_conclusion_about_that_part():
    (found,) = readmitted(TWO, ONE).conclusions
    assert (found.source, found.fault, found.hosts, found.severity) == ("readmit", "part-gone", ("g3",), "critical")
    assert (found.device.name, found.device.serial, found.device.kind) == ("GPU1", "1651", "gpu")
    assert found.statement == "A part that the host had is gone: GPU GPU1 (1651)"


@pytest.mark.parametrize(
    ("before", "after", "is_open"),
    [
        (TWO, TWO, False),
        (TWO, facts(GPU0="1650", GPU1="1700"), False),
        (TWO, facts(GPU0="1651", GPU1="1650"), False),
        (ONE, TWO, False),
        (ONE, facts(GPU0="1650", GPU1="1700"), False),
        (TWO, ONE, True),
        (ONE, ONE, True),
        (TWO, HostFacts("g3", {"gpu.serial": Unread("permission denied")}), True),
    ],
)
def test_a_lost_part_is_closed_by_an_inventory_with_it_or_with_one_in_its_place_alone(before, after, is_open):
    left = folded([readmitted(TWO, ONE), readmitted(before, after, 200)]).open
    assert bool(left) is is_open


def test_numbers_that_cannot_be_read_are_not_judged():
    (looked,) = readmitted(TWO, HostFacts("g3", {"gpu.serial": Unread("permission denied")})).examinations
    assert looked.unjudged == {"part-gone": "serial numbers of the GPUs cannot be read now: permission denied"}


def audit(at, *faults):
    every = tuple(Conclusion(fault, "audit", ("g3",), "high", fault, at) for fault in faults)
    return Examined(every, (Examination("audit", "g3", at, "1", tuple(map(Judged, ("xid", "ecc")))),))


def test_the_second_audit_takes_the_place_of_the_first():
    found = Readmission("g3")
    for name, concluded in (
        ("audit", audit(1, "xid")),
        ("inventory", readmitted(TWO, ONE)),
        ("again", audit(2, "ecc")),
    ):
        found.add(name, StageOutput(StageResult(), concluded=concluded))
    assert [(each.fault, each.at) for each in found.concluded.conclusions] == [("part-gone", 100), ("ecc", 2)]
    assert [(each.source, each.at) for each in found.concluded.examinations] == [("readmit", 100), ("audit", 2)]


@pytest.fixture
def taken(tmp_path, monkeypatch):
    """Take stages that found this, with a history: the readmission, the history, and the evidence."""

    def by(*outputs):
        named = zip(stages.PROOFS, outputs, strict=False)
        proofs = [stages.Stage(stage.name, lambda *_, each=each: each) for stage, each in named]
        monkeypatch.setattr(run, "PROOFS", proofs)
        monkeypatch.setattr(stages.resuming, "resumed", lambda *_: StageResult(DONE))
        request = ReadmitRequest(host="g3", history=str(tmp_path / "history.db"))
        prepared = Prepared(request, SlurmNode("NodeName=g3 State=IDLE+DRAIN"), "", None, (), "")
        place = tmp_path / "evidence.tar.gz"
        found = run.carry_out(prepared, Silent(), lambda each: document.keep(each, request, place))
        with tarfile.open(place) as archive:
            files = {each.name.rpartition("/")[2]: archive.extractfile(each).read().decode() for each in archive}
        return found, History(request.history, make=False), files

    return by


def parts(before, after):
    inventory = replaced_parts.against(before, after)
    return StageOutput(StageResult(), concluded=readmitted(before, after), facts=after, inventory=inventory)


def test_a_host_that_came_back_is_kept_with_what_was_done(taken):
    found, history, files = taken(parts(TWO, facts(GPU0="1650", GPU1="1700")))
    assert found.is_back
    with history:
        done = {each.kind: each for each in history.actions(["g3"])}
        assert history.open() == []
        assert [(source, host) for source, host, *_ in history.examined()] == [("readmit", "g3")]
    assert set(done) == {"repaired", "resumed", "readmitted"}
    assert (done["repaired"].device, done["repaired"].reason) == ("GPU1", "1651 → 1700")
    assert conclusion_json.read(json.loads(files["conclusions.json"])) == found.concluded


def test_a_repair_is_kept_once_however_often_the_host_is_tried(taken):
    for end in (failed("below target: gemm", 5), StageResult()):
        _, history, _ = taken(parts(TWO, facts(GPU0="1650", GPU1="1700")), StageOutput(StageResult()), StageOutput(end))
    with history:
        assert sorted(each.kind for each in history.actions(["g3"])) == ["readmitted", "repaired", "resumed"]


def test_a_host_that_stays_is_kept_with_its_faults_and_not_as_readmitted(taken):
    found, history, files = taken(parts(TWO, ONE), StageOutput(failed("gone: GPU GPU1 (1651)", 1)))
    assert (found.is_back, found.missing) == (False, ["inventory: gone: GPU GPU1 (1651)"])
    with history:
        assert [each.conclusion.fault for each in history.open(["g3"])] == ["part-gone"]
        assert "readmitted" not in {each.kind for each in history.actions(["g3"])}
    told = documents.valid_by_its_own_word(files["readmit.json"])
    assert [each["fault"] for each in told["conclusions"]] == ["part-gone"]
    assert documents.valid("conclusion", files["conclusions.json"])["conclusions"] == told["conclusions"]


def test_an_unreached_host_is_a_conclusion_too(monkeypatch):
    lost = HostResult("g3", "unreachable", "no route")
    monkeypatch.setattr(stages.audit_run, "selected_with_facts", lambda *_: ([], [lost]))
    request = ReadmitRequest(ConnectionOptions(inventory="g3"), Selection(), "g3")
    found = run.carry_out(Prepared(request, None, "", None, (), ""), Silent(), lambda _: None)
    assert list(found.steps) == ["audit", "resume"]
    assert [each.fault for each in found.concluded.conclusions] == ["host-not-reached"]
