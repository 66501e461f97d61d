"""Hosts that break too often, and faults that reboots did not cure."""

import random
from dataclasses import replace

import pytest

from nodetune.api.conclusion import REPAIR, WAIVED, Action, Conclusion, Examination, Examined, Judged
from nodetune.api.device import Device
from nodetune.history import episodes
from nodetune.history.episodes import Event
from nodetune.history.points import DAY

NOW = 20_700 * DAY
HOSTS = {f"n{number:03}": "H200" for number in range(200)}


def quiet(seed=1, rate=0.5, hosts=HOSTS):
    """Events of hosts that are alike, over 90 days."""
    generator = random.Random(seed)
    every = []
    for host in hosts:
        at = NOW - 90 * DAY
        while (at := at + int(generator.expovariate(rate / 90) * DAY)) < NOW:
            every.append(Event(host, at, "gpu-lost"))
    return every


def often(host, count, part="", gap=5):
    return [Event(host, NOW - (number + 1) * gap * DAY, "gpu-lost", part, "GPU3") for number in range(count)]


def named(events, **more):
    return [(each.host, each.part) for each in episodes.lemons(events, HOSTS, **more)]


def test_alike_hosts_have_no_lemon_and_one_that_breaks_weekly_is_one():
    assert named(quiet()) == []
    assert named([*quiet(), *often("n007", 12)]) == [("n007", "")]


def test_many_events_of_a_day_are_one_episode():
    burst = [Event("n007", NOW - DAY + 600 * number, "gpu-lost") for number in range(100)]
    assert named([*quiet(), *burst]) == []


def test_what_drains_many_hosts_within_an_hour_counts_for_none():
    outages = [
        Event(f"n{host:03}", NOW - day * DAY + 60 * host, "drained: fabric")
        for day in range(5, 80, 5)
        for host in range(30)
    ]
    assert named([*quiet(), *outages]) == []


def test_models_of_different_rates_are_compared_with_their_own():
    of = {host: "old" if host < "n100" else "new" for host in HOSTS}
    old = [host for host in of if of[host] == "old"]
    events = [*quiet(2, 6.0, old), *quiet(3, 0.2, [host for host in of if of[host] == "new"])]
    assert episodes.lemons(events, of) == []
    worse = [*events, *often("n150", 8)]
    assert [each.host for each in episodes.lemons(worse, of)] == ["n150"]


def test_a_part_with_most_of_the_episodes_is_named_in_place_of_its_host():
    assert named([*quiet(), *often("n007", 12, "serial")], parts=1600) == [("n007", "serial")]
    mixed = [*often("n007", 6, "serial"), *often("n007", 6, "other", gap=7)]
    assert named([*quiet(), *mixed], parts=1600) == [("n007", "")]


def fault(at, device=None, who=REPAIR):
    found = Conclusion("gpu-lost", "audit", ("n1",), "critical", "A GPU is lost", at, device, who=who)
    return Examined((found,), (Examination("audit", "n1", at, "0.3.0", (Judged("gpu-lost"),)),))


def boots(history, look, *times):
    for number, at in enumerate(times):
        history.record([look(at, {"host.boot_id": str(number)})])


@pytest.mark.parametrize(("reboots", "who", "is_hardware"), [(1, REPAIR, False), (2, REPAIR, True), (3, "hand", False)])
def test_a_fault_that_two_reboots_did_not_cure_is_hardware(history, look, reboots, who, is_hardware):
    boots(history, look, 0, *(900 * number for number in range(2, 2 + reboots)))
    history.conclude(fault(NOW + 900, Device("GPU3", "0000:61:00.0"), who))
    history.conclude(fault(NOW + 9000, Device("GPU3", "0000:61:00.0"), who))
    history.judge_episodes(NOW + 9100)
    found = [each.conclusion for each in history.open() if each.conclusion.fault == "fault-survives-reboots"]
    assert [(each.about, each.device.name) for each in found] == [("gpu-lost", "GPU3")] * is_hardware


def test_a_fault_that_was_not_seen_since_the_last_reboot_is_not_called_hardware(history, look):
    boots(history, look, 0, 1800, 2700, 9000)
    history.conclude(fault(NOW + 900))
    history.judge_episodes(NOW + 9100)
    assert [each.conclusion.fault for each in history.open()] == ["gpu-lost"]


def test_it_is_over_when_the_fault_is(history, look):
    boots(history, look, 0, 1800, 2700)
    history.conclude(fault(NOW + 900))
    history.conclude(fault(NOW + 3600))
    history.judge_episodes(NOW + 3700)
    assert len(history.open()) == 2
    history.conclude(Examined((), (Examination("audit", "n1", NOW + 4500, "0.3.0", (Judged("gpu-lost"),)),)))
    history.judge_episodes(NOW + 4600)
    assert history.open() == []


def test_boots_are_among_what_was_done(history, look):
    boots(history, look, 0, 1800)
    history.act([Action("drained", "n1", NOW + 900, "guard", "gpu-lost")])
    assert [each.kind for each in history.actions(["n1"])] == ["drained", "rebooted"]


def test_a_lemon_is_a_conclusion_with_its_episodes(history, look):
    history.record([look(0, {"gpu.names": {"GPU0": "H200"}}, host) for host in list(HOSTS)[:50]])
    for number in range(9):
        history.act([Action("drained", "n007", NOW - number * 5 * DAY, "guard", "gpu-lost: GPU3")])
    history.act([Action("drained", "n008", NOW - 7 * DAY, "guard", "gpu-lost: GPU1")])
    history.judge_episodes(NOW + 60)
    (found,) = history.open()
    assert (found.conclusion.fault, found.conclusion.hosts) == ("host-often-broken", ("n007",))
    assert "drained: gpu-lost: GPU3" in found.conclusion.evidence[0]
    history.judge_episodes(NOW + 89 * DAY)
    assert history.open() == [], "its episodes are long ago"


def test_what_a_person_waived_is_no_episode(history, look):
    history.record([look(0, {"gpu.names": {"GPU0": "H200"}}, host) for host in list(HOSTS)[:50]])
    for number in range(9, 0, -1):
        at = NOW - number * 5 * DAY
        waived = Conclusion("gpu-x", "audit", ("n007",), "critical", "x", at, state=WAIVED, who=REPAIR)
        looked = Examination("audit", "n007", at, "0.3.0", (Judged("gpu-x"),))
        history.conclude(Examined((waived,), (looked,)))
        history.conclude(Examined((), (replace(looked, at=at + DAY),)))
    history.judge_episodes(NOW + 60)
    assert history.open() == []
