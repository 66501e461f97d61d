"""What closes a conclusion, and what leaves it open: for each source alike, in a history and without one."""

import sqlite3
from dataclasses import replace

import pytest

from nodetune.api.conclusion import SOURCES, WAIVED, Action, Conclusion, Examination, Examined, Judged
from nodetune.api.device import Device
from nodetune.api.model import Finding, HostResult
from nodetune.audit.conclude import concluded as audited
from nodetune.history import closing, connection
from nodetune.history.closing import EXCHANGED, PROVEN
from nodetune.history.history import History

T = 20_700 * 86_400
BAD = (Judged("bad"),)
GPU = Device("GPU3", "0000:61:00.0", serial="A", kind="gpu")
SPARE = replace(GPU, serial="B")


def concluded(source, at=T, host="n1", device=GPU, **more):
    found = Conclusion("bad", source, (host,), "high", f"It is bad: {more.get('observed', 0)}", at, device, **more)
    return Examined((found,), (looked(source, at, host),))


def looked(source, at, host="n1", judged=BAD, edition="0.3.0", devices=(), **unjudged):
    return Examination(source, host, at, edition, judged, unjudged, devices)


def after(*every):
    """What is open after these, as (source, device's part), and why the others were closed."""
    done = closing.folded(every)
    return [each.conclusion.device.part for each in done.open], [each.why for each in done.closed]


PROVES_NOTHING = {
    "deselected": {"judged": (Judged("other"),)},
    "unread": {"judged": (), "bad": "needs root"},
    "another device": {"judged": (Judged("bad", only=frozenset({"GPU4"})),)},
    "the device was unread": {"judged": (Judged("bad", unread=frozenset({"GPU3"})),)},
    "another figure": {"judged": (Judged("bad", "gemm"),)},
    "an older edition": {"edition": "0.2.9"},
    "a development edition before it": {"edition": "0.3.0.dev4"},
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", PROVES_NOTHING)
def test_what_proves_nothing_leaves_it_open(source, how):
    later = Examined((), (looked(source, T + 900, **PROVES_NOTHING[how]),))
    assert after(concluded(source), later) == (["A"], [])


@pytest.mark.parametrize("source", SOURCES)
def test_an_older_examination_leaves_it_open(source):
    assert after(concluded(source), Examined((), (looked(source, T - 900),))) == (["A"], [])


@pytest.mark.parametrize("source", SOURCES)
def test_a_host_that_was_not_reached_leaves_it_open(source):
    lost = Conclusion("host-not-reached", "reach", ("n1",), "medium", "refused", T + 900)
    found = closing.folded([concluded(source), Examined((lost,))])
    assert {each.conclusion.fault for each in found.open} == {"bad", "host-not-reached"}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("edition", ["0.3.0", "0.10.0", "1.0.0rc1"])
def test_an_examination_that_proves_it_good_closes_it(source, edition):
    assert after(concluded(source), Examined((), (looked(source, T + 900, edition=edition),))) == ([], [PROVEN])


@pytest.mark.parametrize("source", SOURCES)
def test_an_exchanged_part_closes_the_old_one_and_starts_its_own(source):
    now = concluded(source, T + 900, device=SPARE)
    now = replace(now, examinations=(looked(source, T + 900, devices=(SPARE,)),))
    assert after(concluded(source), now) == (["B"], [EXCHANGED])


@pytest.mark.parametrize("source", SOURCES)
def test_another_source_proves_nothing(source):
    other = next(each for each in SOURCES if each != source)
    assert after(concluded(source), Examined((), (looked(other, T + 900),))) == (["A"], [])


def test_a_part_that_was_moved_on_its_host_is_the_same():
    moved = replace(GPU, name="GPU5", address="0000:c1:00.0")
    now = Examined(concluded("audit", T + 900, device=moved).conclusions, (looked("audit", T + 900, devices=(moved,)),))
    assert after(concluded("audit"), now) == (["A"], [])
    proof = looked(
        "audit",
        T + 1800,
        judged=(Judged("bad", unread=frozenset({"GPU5"})),),
        devices=(moved, replace(GPU, serial="C")),
    )
    assert after(concluded("audit"), Examined((), (proof,))) == (["A"], []), (
        "at its old place is another part, unread is where it is now"
    )


def test_a_serial_number_that_could_not_be_read_is_no_other_part():
    unknown = replace(GPU, serial="")
    assert after(concluded("audit"), concluded("audit", T + 900, device=unknown)) == (["A"], [])
    assert after(concluded("audit", device=unknown), concluded("audit", T + 900)) == (["A"], [])


def test_a_path_closes_when_both_ends_prove_it():
    path = Conclusion("path-slow", "find-slow", ("n1", "n2"), "high", "slow", T, Device("n1 to n2", kind="link"))
    both = tuple(looked("find-slow", T, host, (Judged("path-slow"),)) for host in ("n1", "n2"))
    later = [replace(each, at=T + 900) for each in both]
    assert [each.conclusion for each in closing.folded([Examined((path,), both), Examined((), (later[0],))]).open] == [
        path
    ]
    assert closing.folded([Examined((path,), both), Examined((), tuple(later))]).open == []


def test_since_is_the_first_time_and_the_text_is_the_last(history):
    history.conclude(concluded("verify", observed=40))
    history.conclude(concluded("verify", T + 900, observed=30))
    (known,) = history.open(["n1"])
    assert (known.since, known.conclusion.observed, known.unproven) == (T, 30, 0)
    history.conclude(Examined((), (looked("verify", T + 1800, judged=()),)))
    history.conclude(Examined((), (looked("verify", T + 2700, judged=()),)))
    assert history.open(["n1"])[0].unproven == T + 900, "since the last look that said something about it"
    history.conclude(concluded("verify", T + 3600, observed=30))
    assert history.open(["n1"])[0].unproven == 0


@pytest.mark.parametrize(
    "change", [{"who": "apply"}, {"explained_by": "worse"}, {"reason": "until May", "state": WAIVED}]
)
def test_who_acts_and_what_explains_it_are_those_of_now(history, change):
    history.conclude(concluded("audit"))
    history.conclude(concluded("audit", T + 900, **change))
    (known,) = history.open()
    assert {name: getattr(known.conclusion, name) for name in change} == change


def test_a_history_closes_as_a_fold_does(history):
    steps = [
        concluded("audit"),
        Examined((), (looked("audit", T + 900, judged=()),)),
        concluded("audit", T + 1800, device=SPARE),
        Examined((), (looked("audit", T + 2700, devices=(SPARE,)),)),
    ]
    for number, step in enumerate(steps, 1):
        history.conclude(step)
        folded = closing.folded(steps[:number])
        assert [each.conclusion for each in history.open()] == [each.conclusion for each in folded.open], number
    rows = history._db.rows("SELECT part, since, gone, why FROM conclusion ORDER BY since")
    assert rows == [("A", T, T + 1800, "exchanged"), ("B", T + 1800, T + 2700, "proven")]


def test_facts_that_show_an_exchange_close_what_others_said_of_the_part(history, look):
    history.record([look(0, {"gpu.serial": {"GPU3": "A"}})])
    history.conclude(concluded("find-slow"))
    history.record([look(900, {"gpu.serial": {"GPU3": "B"}})])
    history.conclude(Examined((), (looked("audit", T + 900),)))
    assert history.open() == []


def test_two_gpus_that_changed_places_are_not_exchanged(history, look):
    history.record([look(0, {"gpu.serial": {"GPU3": "A", "GPU4": "B"}})])
    history.conclude(concluded("find-slow"))
    history.record([look(900, {"gpu.serial": {"GPU3": "B", "GPU4": "A"}})])
    history.conclude(Examined((), (looked("audit", T + 900),)))
    assert len(history.open()) == 1


def test_conclusions_about_two_hosts_are_found_for_both(history):
    path = Conclusion("path-slow", "find-slow", ("n1", "n2"), "high", "slow", T, Device("n1 to n2", kind="link"))
    history.conclude(Examined((path,), ()))
    assert (
        [each.conclusion for each in history.open(["n2"])]
        == [each.conclusion for each in history.open(["n1"])]
        == [path]
    )


def test_a_waived_one_is_kept_as_waived(history):
    history.conclude(concluded("audit", state=WAIVED, reason="until spring"))
    assert [(each.conclusion.state, each.conclusion.reason) for each in history.open()] == [(WAIVED, "until spring")]
    assert history.since(["n1"]) == {}, "a waived finding fails nothing"


def test_what_was_done_is_kept_once(history):
    drained = Action("drained", "n1", T, "guard", "gpu-lost: GPU3")
    history.act([drained])
    history.act([drained, Action("resumed", "n1", T + 900, "ann")])
    assert [each.kind for each in history.actions(["n1"])] == ["drained", "resumed"]
    assert history.actions(["n2"]) == []
    assert [each.at for each in history.actions(since=T + 1)] == [T + 900]


def test_why_a_fault_was_not_judged_is_known_of_each_host(history):
    for host in ("n1", "n2"):
        history.conclude(Examined((), (looked("audit", T, host, judged=(), bad="needs root"),)))
    assert sorted(history.examined()) == [
        ("audit", "n1", T, {"bad": "needs root"}),
        ("audit", "n2", T, {"bad": "needs root"}),
    ]


def test_a_host_with_two_examinations_is_proven_good_by_either():
    path = Conclusion("path-slow", "verify", ("n1", "n2"), "high", "slow", T, Device("n1→n2", kind="link"))
    ends = [looked("verify", T + 900, host, (Judged("path-slow"),)) for host in ("n1", "n2")]
    own = [looked("verify", T + 900, host, (Judged("other"),)) for host in ("n1", "n2")]
    for order in ([*ends, *own], [*own, *ends]):
        assert closing.folded([Examined((path,)), Examined((), tuple(order))]).open == []


def test_a_fault_that_is_told_twice_of_a_part_is_open_once(history):
    twice = Examined(concluded("audit").conclusions * 2, (looked("audit", T),))
    history.conclude(twice)
    history.conclude(replace(twice, conclusions=tuple(replace(each, statement="now") for each in twice.conclusions)))
    assert [each.since for each in history.open()] == [T]


def test_a_card_that_was_not_read_by_the_name_of_its_interface_stays_open():
    card = Device("mlx5_2", "0000:c1:00.0", netdev="eth0", kind="nic")
    proof = looked("audit", T + 900, judged=(Judged("bad", unread=frozenset({"eth0"})),))
    assert len(closing.folded([concluded("audit", device=card), Examined((), (proof,))]).open) == 1


@pytest.mark.parametrize("edition", ["9" * 5000, "1." + "9" * 5000, "a" + "9" * 5000], ids=["alone", "later", "pre"])
def test_an_edition_of_many_digits_is_compared_and_ends_nothing(edition):
    closing.folded([concluded("audit"), Examined((), (looked("audit", T + 900, edition=edition),))])


EIGHT = {f"GPU{number}": serial for number, serial in enumerate("STUAVWXY")}
"""The serial numbers of a host whose GPU3 has a fault."""


def moved_up(*serials):
    return {f"GPU{number}": serial for number, serial in enumerate(serials)}


@pytest.mark.parametrize("source", ["audit", "verify"])
def test_a_gpu_that_fell_off_the_bus_is_neither_proven_good_nor_exchanged(history, look, source):
    history.record([look(0, {"gpu.serial": EIGHT})])
    history.conclude(concluded(source))
    history.record([look(900, {"gpu.serial": moved_up(*"STUVWXY")})])
    history.conclude(Examined((), (looked(source, T + 900),)))
    assert [each.conclusion.device.serial for each in history.open()] == ["A"]
    history.record([look(1800, {"gpu.serial": EIGHT})])
    history.conclude(Examined((), (looked(source, T + 1800),)))
    assert history.open() == [], "it is there again, and was judged"


def test_a_gpu_that_another_replaces_while_it_is_away_is_exchanged(history, look):
    history.record([look(0, {"gpu.serial": EIGHT})])
    history.conclude(concluded("verify"))
    history.record([look(900, {"gpu.serial": moved_up(*"STUVWXY")})])
    history.record([look(1800, {"gpu.serial": EIGHT | {"GPU3": "B"}})])
    history.conclude(Examined((), (looked("audit", T + 1800),)))
    assert history.open() == []


def test_of_eight_gpus_with_a_fault_the_one_that_was_repaired_closes(history, look):
    every = [replace(GPU, name=name, address=f"0000:{61 + at}:00.0", serial=serial)
             for at, (name, serial) in enumerate(EIGHT.items())]  # fmt: skip
    faults = tuple(concluded("audit", device=each).conclusions[0] for each in every)
    history.record([look(0, {"gpu.serial": EIGHT})])
    history.conclude(Examined(faults, (looked("audit", T),)))
    history.record([look(900, {"gpu.serial": EIGHT})])
    later = tuple(replace(each, at=T + 900) for each in faults if each.device.name != "GPU3")
    history.conclude(Examined(later, (looked("audit", T + 900, devices=tuple(every)),)))
    assert {each.conclusion.device.name for each in history.open()} == EIGHT.keys() - {"GPU3"}


def test_the_reasons_of_a_host_outlast_its_examination_as_the_end_of_a_path(history):
    own, end = looked("verify", T, bad="disturbed"), looked("verify", T)
    history.conclude(Examined((), (own, end)))
    assert [each[3] for each in history.examined()] == [{"bad": "disturbed"}]


def test_findings_of_the_first_schema_keep_their_time_by_any_name_of_their_device(tmp_path, monkeypatch):
    place = str(tmp_path / "history.db")
    monkeypatch.setattr(connection, "MIGRATIONS", connection.MIGRATIONS[:1])
    History(place).close()
    monkeypatch.undo()
    subjects = ("", "GPU3", "0000:61:00.0", "eth0", "mlx5_2/1", "GPU3 power_limit")
    with sqlite3.connect(place) as db:
        db.execute("INSERT INTO host (id, name) VALUES (1, 'n1')")
        rows = [(f"check-{number}", subject, T) for number, subject in enumerate(subjects)]
        db.executemany("INSERT INTO verdict VALUES (1, ?, ?, ?, NULL)", rows)
    devices = (GPU, Device("mlx5_2", "0000:c1:00.0", netdev="eth0", kind="nic"))
    found = [
        Finding(f"check-{number}", "fail", "high", "It is bad", "x", subjects={subject: "x"} if subject else {})
        for number, subject in enumerate(subjects)
    ]
    with History(place) as history:
        for at in (T + 900, T + 1800):
            history.conclude(audited([HostResult("n1", "ok", findings=tuple(found), devices=devices, at=at)]))
            assert [each.since for each in history.open()] == [T] * len(subjects)
        passed = tuple(Finding(each.check, "pass", "high") for each in found)
        history.conclude(audited([HostResult("n1", "ok", findings=passed, at=T + 2700)]))
        assert history.open() == []


@pytest.mark.parametrize("wrong", [{"host": "n\ud800"}, {"at": 1 << 63}, {"device": Device("\ud800")}])
def test_what_a_database_cannot_hold_is_one_line_and_loses_nothing(history, wrong):
    history.conclude(concluded("audit"))
    with pytest.raises(connection.HistoryError):
        history.conclude(concluded("verify", **wrong))
    assert [each.conclusion.source for each in history.open()] == ["audit"]
