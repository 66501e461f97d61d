"""What a history keeps, on SQLite and on PostgreSQL."""

import pytest

from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.history import schema, structure
from nodetune.history.connection import HistoryError
from nodetune.history.history import History
from nodetune.history.points import DAY
from nodetune.history.snapshot import Sorter

START = 20_700 * DAY  # of conftest.py


def leaves(changes):
    return [(each.leaf, each.before, each.after) for each in changes]


def test_a_first_look_is_no_change_and_a_later_one_names_what_changed(history, look):
    history.record([look(0, {"sysctl.vm.swappiness": 60, "cpu.governor": {"0": "powersave", "1": "powersave"}})])
    assert history.changes("n1") == []
    done = history.record(
        [look(900, {"sysctl.vm.swappiness": 1, "cpu.governor": {"0": "performance", "1": "powersave"}})]
    )
    assert (done.looks, done.changes) == (1, 2)
    assert leaves(history.changes("n1")) == [
        ("cpu.governor/0", "powersave", "performance"),
        ("sysctl.vm.swappiness", 60, 1),
    ]
    assert history.changes("n1")[0].at == START + 900


def test_what_was_not_read_stays_as_it_was(history, look):
    both = Each({"0": Value("powersave"), "1": Value("powersave")})
    history.record(
        [look(0, {"cpu.governor": both, "sysctl.vm.swappiness": 60, "gpu.pcie_replay_counter": {"GPU0": 7}})]
    )
    history.record([look(900, {"cpu.governor": Each({"0": Unread("no"), "1": Value("performance")})})])
    assert leaves(history.changes("n1")) == [("cpu.governor/1", "powersave", "performance")]
    history.record(
        [look(1800, {"cpu.governor": Each({"0": Value("x"), "1": Value("performance")}), "sysctl.vm.swappiness": 60})]
    )
    assert leaves(history.changes("n1"))[1:] == [("cpu.governor/0", "powersave", "x")]
    assert [point.low for point in history.series("n1", "gpu.pcie_replay_counter/GPU0")] == [7, 7, 7]


def test_a_subject_that_is_gone_is_a_change(history, look):
    history.record([look(0, {"cpu.governor": {"0": "powersave", "1": "powersave"}})])
    history.record([look(900, {"cpu.governor": {"0": "powersave"}})])
    assert leaves(history.changes("n1")) == [("cpu.governor/1", "powersave", None)]


def test_a_look_that_is_not_newer_is_dropped(history, look):
    history.record([look(900, {"sysctl.vm.swappiness": 60})])
    done = history.record([look(900, {"sysctl.vm.swappiness": 1}), look(900, {"sysctl.vm.swappiness": 1}, "n2")])
    assert (done.looks, done.late) == (1, 1)
    assert history.changes("n1") == []


def test_facts_without_a_time_are_no_look(look):
    assert look(-START, {"sysctl.vm.swappiness": 60}) is None


def test_a_series_is_days_then_looks_and_thinning_keeps_growth(history, look):
    for day in range(12):
        for hour in range(0, 24, 6):
            seen = {"gpu.pcie_replay_counter": {"GPU0": 100 * day + hour}, "gpu.temperature": {"GPU0": 40 + hour}}
            history.record([look(day * DAY + hour * 3600, seen)])
    before = history.series("n1", "gpu.pcie_replay_counter/GPU0")
    assert len(before) == 48
    assert history.thin(START + 12 * DAY) == 10
    after = history.series("n1", "gpu.pcie_replay_counter/GPU0")
    assert [(each.at - START) // DAY for each in after[:5]] == [0, 1, 2, 3, 4]
    assert [each.grown for each in after[:5]] == [18, 100, 100, 100, 100]
    assert [each.grown for each in after[5:]] == [None] * 29
    assert sum(each.grown for each in after[:5]) == after[5].low - before[0].low, "no step is lost at midnight"
    temperatures = history.series("n1", "gpu.temperature/GPU0")
    assert (temperatures[1].low, temperatures[1].high) == (40, 58)
    assert history.thin(START + 12 * DAY) == 0


def test_rates_are_growth_a_day(history, look):
    for hour in (0, 12, 24):
        errors = {
            "rdma.counters": {"mlx5_0/1": {"symbol_error": hour, "port_xmit_packets": 10**12}},
            "gpu.temperature": {"GPU0": 50},
        }
        history.record([look(hour * 3600, errors), look(hour * 3600, errors, "n2")])
    found = history.rates(START + DAY, "rdma.counters")
    assert {(each.host, each.leaf.rpartition("/")[2]): each.a_day for each in found} == {
        ("n1", "symbol_error"): 24.0,
        ("n1", "port_xmit_packets"): 0.0,
        ("n2", "symbol_error"): 24.0,
        ("n2", "port_xmit_packets"): 0.0,
    }
    assert history.rates(START + DAY, "gpu.temperature") == [], "a temperature does not grow"
    assert history.rates(START + DAY, "rdma.counters", 3 * DAY) == [], "one look gives no rate"


def test_numbers_of_64_bits_are_kept(history, look):
    for day, sent in enumerate((2**64 - 5, 2**64 - 2, 7)):
        history.record([look(day * DAY, {"rdma.counters": {"mlx5_0/1": {"port_xmit_data": sent}}})])
    assert [each.low for each in history.series("n1", "rdma.counters/mlx5_0/1/port_xmit_data")] == [
        2**64 - 5,
        2**64 - 2,
        2**64 + 7,
    ]
    assert history.thin(START + 20 * DAY) == 0, "larger than a database takes: clipped, so it does not move"


def test_an_older_database_is_brought_up_to_date(history, place, look, monkeypatch):
    history.record([look(0, {"sysctl.vm.swappiness": 60})])
    monkeypatch.setattr(
        "nodetune.history.connection.MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE more (id {number}, name TEXT)",))
    )
    with History(place) as newer:
        assert newer.hosts() == ["n1"]
        newer._db.add("more (name)", [("x",)])
        assert newer._db.rows("SELECT name FROM more") == [("x",)]
    monkeypatch.undo()
    with pytest.raises(HistoryError, match="schema 3 was written by a newer nodetune, this one knows 2: update"):
        History(place)


def test_what_is_no_history_is_said_in_one_line(tmp_path):
    wrong = tmp_path / "facts.json"
    wrong.write_text("{}" * 1000)
    with pytest.raises(HistoryError, match="facts.json: file is not a database"):
        History(str(wrong))
    with pytest.raises(HistoryError, match="no such history: nodetune audit --history .* begins one"):
        History(str(tmp_path / "none"), make=False)
    with pytest.raises(HistoryError, match=r"postgresql:///none\?host=/nowhere: .*connection") as told:
        History("postgresql://nobody:secret@/none?host=/nowhere")
    assert "secret" not in str(told.value)


def test_only_its_owner_reads_a_history(tmp_path):
    History(str(tmp_path / "history.db")).__exit__(None, None, None)
    assert (tmp_path / "history.db").stat().st_mode & 0o777 == 0o600


def test_equal_contents_of_two_facts_are_two_facts(history, look):
    gone = {"sysctl.vm.swappiness": Absent(), "sysctl.vm.zone_reclaim_mode": Absent()}
    history.record([look(0, gone)])
    history.record([look(900, gone | {"sysctl.vm.zone_reclaim_mode": Value(1)})])
    assert leaves(history.changes("n1")) == [("sysctl.vm.zone_reclaim_mode", None, 1)]


def test_a_setting_next_to_a_number_that_moves_is_no_change(history, look):
    history.record([look(0, {"pci.devices": {"0": {"link_width": 16, "link_speed_gts": 0}}})])
    done = history.record([look(900, {"pci.devices": {"0": {"link_width": 16, "link_speed_gts": 5}}})])
    assert (done.looks, done.changes) == (1, 0)
    assert history.series("n1", "pci.devices/0/link_speed_gts")[-1].high == 5


AER = {"0": Value({"correctable": {"BadTLP": 2}, "fatal": {}}), "1": Value({"correctable": {}, "fatal": {}})}
USUAL = {
    "pci.aer": Each(AER),
    "gpu.serial": Each({"GPU0": Value("a"), "GPU1": Value("b")}),
    "gpu.temperature": Each({"GPU0": Value(40), "GPU1": Value(41)}),
    "services.docker": Value({"active": "active", "pid": 7, "drop_ins": [], "restarts": 0}),
    "sysctl.vm.swappiness": Value(60),
}


@pytest.mark.parametrize(
    "other",
    [
        {"pci.aer": Each({"0": AER["1"], "1": AER["0"]})},
        {"pci.aer": Unread("no"), "gpu.temperature": Each({"GPU0": Unread("no"), "GPU1": Value(50)})},
        {"gpu.serial": Each({"GPU0": Value("a"), "GPU1": Absent()}), "services.docker": Absent()},
        {"services.docker": Value({"active": "failed", "pid": 9, "drop_ins": ["x"], "restarts": 3})},
        {"services.docker": Value({"active": "active", "pid": None, "drop_ins": [], "restarts": 0})},
        {"services.docker": Value({"active": "active", "pid": 8, "drop_ins": [], "restarts": False})},
        {"services.docker": Value({"pid": 7, "active": "active", "drop_ins": []})},
        {"sysctl.vm.swappiness": Value(None), "gpu.temperature": Each({})},
        {"sysctl.vm.swappiness": Value(True)},
    ],
)
@pytest.mark.parametrize("plans", [structure.PLANS, 0])
def test_a_look_does_not_depend_on_the_hosts_before_it(other, plans, monkeypatch):
    def told(look):
        numbers = dict(zip([leaf for form in look.forms for leaf in form.leaves], look.values, strict=True))
        return look.settings(), look.prints, set(look.unread), set(look.parts), numbers

    def look(sorter, facts):
        return told(sorter.look(HostFacts("n1", facts, {"time": START})))

    hosts = [USUAL, USUAL | other, dict(reversed(USUAL.items())), USUAL, USUAL | other]
    first = [*hosts[1:2], *hosts]
    alone = [look(Sorter(), facts) for facts in first]
    monkeypatch.setattr(structure, "PLANS", plans)
    sorter = Sorter()
    assert [look(sorter, facts) for facts in hosts] == alone[1:]
    sorter = Sorter()
    assert [look(sorter, facts) for facts in first] == alone
