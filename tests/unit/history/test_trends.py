"""What the detector names, and what it does not: driven through the history, a look a day."""

import random
from pathlib import Path

import pytest

from nodetune.facts import document
from nodetune.foundation import paths
from nodetune.history import trends
from nodetune.history.points import DAY
from nodetune.history.trends import LeafSeries

START = 20_700 * DAY  # of conftest.py
HOSTS = 20
REPLAYS = "gpu.pcie_replay_counter"


@pytest.fixture
def days(history, look):
    """Judges days one after the other: a look each at every host, by a function of the growth of (host, GPU, day)."""

    def run(grown, last, exchanged=None):
        counts = {(host, gpu): 0 for host in range(HOSTS) for gpu in range(8)}
        found = []
        for day in range(last):
            looks = []
            for host in range(HOSTS):
                for gpu in range(8):
                    counts[host, gpu] += grown(host, gpu, day)
                serial = {f"GPU{gpu}": f"{host}-{gpu}-{(host, gpu) == exchanged and day > 14}" for gpu in range(8)}
                values = {f"GPU{gpu}": counts[host, gpu] for gpu in range(8)}
                looks.append(look(day * DAY, {REPLAYS: values, "gpu.serial": serial}, f"n{host}"))
            history.record(looks)
            found += [(day, each.host, each.name) for each in history.daily(START + day * DAY)]
        return found

    return run


def healthy(host, gpu, day):
    return random.Random(f"{host} {gpu} {day}").choice((0, 0, 1, 3))


def dying(host, gpu, day):
    return healthy(host, gpu, day) + (round(1.6 ** (day - 10) * 10) if (host, gpu) == (7, 3) and day >= 10 else 0)


def test_a_slow_death_is_named_and_nothing_else(days, history):
    found = days(dying, 20)
    assert {each[1:] for each in found} == {("n7", f"{REPLAYS}/GPU3")}
    assert found[0][0] == 14, "over four times the usual on days 12 to 14"
    (trend,) = history.trends()
    told = trends.sentence(trend)
    assert told.startswith(
        "GPU3 of n7: gpu.pcie_replay_counter grew by 690 in 24 hours, usually by at most 67; so on 5 of"
    )
    assert "100 % of its 159 peers grew less" in told
    assert "it doubles in 1." in told


def test_healthy_counters_are_never_named(days):
    assert days(healthy, 20) == []


def test_a_burst_on_one_day_is_no_trend(days):
    assert days(lambda host, gpu, day: healthy(host, gpu, day) + 5000 * ((host, gpu, day) == (7, 3, 12)), 20) == []


def test_what_all_peers_have_is_no_trend(days):
    assert days(lambda host, gpu, day: healthy(host, gpu, day) + (500 + 10 * day) * (day > 11), 18) == []


def test_what_grew_always_is_no_trend_once_there_is_a_past(days):
    found = days(lambda host, gpu, day: healthy(host, gpu, day) + 800 * ((host, gpu) == (7, 3)), 20)
    assert [each for each in found if each[0] > 7] == [], "before, only its peers say what is usual"


def test_an_exchanged_gpu_has_no_past(days):
    found = days(lambda host, gpu, day: 0 if day < 15 else 40 * ((host, gpu) == (7, 3)), 17, exchanged=(7, 3))
    assert found == []


@pytest.mark.parametrize(
    ("counter", "serial"),
    [
        ("memory.edac.corrected/mc0", "memory.serial/CPU1_DIMM_A1"),
        ("net.carrier_changes/eth0", "rdma.guid/mlx5_0"),
        ("pci.aer/0000:1b:00.0", "gpu.serial/GPU0"),
        ("block.smart/nvme0", "block.serial/nvme0"),
    ],
)
@pytest.mark.parametrize(("exchange", "named"), [(99, ["n1"]), (13, [])])
def test_a_trend_ends_with_the_exchange_of_its_part(history, look, counter, serial, exchange, named):
    fact, subject = counter.split("/")
    part, place = serial.split("/")
    items = {
        "pci.aer": lambda count: {"correctable": {"BadTLP": count}},
        "block.smart": lambda count: {"media_errors": count},
    }
    for day in range(14):
        seen = items.get(fact, int)(2 ** max(0, day - 4) * 10)
        history.record([look(day * DAY, {fact: {subject: seen}, part: {place: str(day // exchange)}})])
        found = history.daily(START + day * DAY)
    assert [each.host for each in found] == named


def test_a_machine_never_alarms_at_first_sight(history, look):
    folders = paths.bundled("facts/recorded"), Path(__file__).parents[2] / "data" / "corpus"
    machines = {file.stem: document.load(file).facts for folder in folders for file in folder.glob("*.json")}
    for at in (0, 900, DAY):
        assert history.record([look(at, facts, name) for name, facts in machines.items()]).looks == len(machines) > 40
        assert history.daily(START + at) == []


def test_the_links_of_a_gpu_are_judged_together(history, look):
    for day in range(12):
        for host in ("n1", "n2"):
            links = {str(link): (2 ** max(0, day - 6)) * (host == "n1") for link in range(18)}
            errors = {f"GPU{gpu}": {"recovery": links if gpu == 3 else {}, "replay": {}} for gpu in range(8)}
            history.record([look(day * DAY, {"gpu.nvlink_errors": errors}, host)])
        found = history.daily(START + day * DAY)
    (trend,) = found
    assert trend.name == "gpu.nvlink_errors/GPU3/recovery"
    assert trend.figure == 18 * 16
    assert trends.sentence(trend).endswith("at this growth it passes 500 a day on 2026-09-16")


def test_a_gpu_that_runs_ever_hotter_than_the_others_is_named(history, look):
    for day in range(20):
        for hour in range(0, 24, 3):
            load = 30 * ((day + hour) % 4 > 0)
            heat = {
                f"GPU{gpu}": 40 + load + gpu % 3 + (day - 10) * (gpu == 5 and day > 10 and load > 0) for gpu in range(8)
            }
            history.record([look(day * DAY + hour * 3600, {"gpu.temperature": heat})])
        found = history.daily(START + day * DAY + 23 * 3600)
    (trend,) = found
    assert trend.name == "gpu.temperature/GPU5"
    assert "°C above the other GPUs of its host" in trends.sentence(trend)


def test_a_day_on_which_no_gpu_was_warm_leaves_a_hot_one_open(history, look):
    for day in range(22):
        load = 30 * (day < 20 or day == 21)
        for hour in range(0, 24, 3):
            heat = {f"GPU{gpu}": 40 + load + gpu % 3 + (day - 10) * (gpu == 5 and 10 < day < 20) for gpu in range(8)}
            history.record([look(day * DAY + hour * 3600, {"gpu.temperature": heat})])
        history.daily(START + day * DAY + 23 * 3600)
        if day >= 19:
            hot = [each for each in history.open() if each.conclusion.about == "gpu.temperature"]
            assert len(hot) == (day < 21), f"day {day}: an idle host proves nothing, a warm one does"


def test_with_few_peers_a_part_without_a_past_is_not_judged():
    assert not trends.judge([LeafSeries("n1", f"{REPLAYS}/GPU0", 10**6)], 8)[0].hit
    assert trends.judge([LeafSeries("n1", f"{REPLAYS}/GPU0", 10**6)], 800)[0].hit


def test_all_gpus_of_a_host_that_die_together_are_named(days):
    def board(host, gpu, day):
        return dying(7, 3, day) if host == 7 else healthy(host, gpu, day)

    assert {each[1:] for each in days(board, 18)} == {("n7", f"{REPLAYS}/GPU{gpu}") for gpu in range(8)}


def test_a_job_that_moves_all_peers_nearly_alike_names_none(days):
    def job(host, gpu, day):
        return (2000 + 100 * day + 40 * ((host, gpu) == (7, 3))) * (day > 11)

    assert days(job, 18) == []


def test_heat_of_a_gpu_that_usually_is_as_warm_as_its_peers_is_named(history, look):
    for day in range(15):
        heat = {f"GPU{gpu}": 66 + (gpu == 3) * {10: 8, 11: 10, 12: 12, 13: 15, 14: 20}.get(day, 0) for gpu in range(8)}
        history.record([look(day * DAY, {"gpu.temperature": heat})])
        found = history.daily(START + day * DAY)
    (trend,) = found
    assert (trend.name, trend.usual, trend.figure) == ("gpu.temperature/GPU3", 0, 20)


def replays(history, look, at, counts, **more):
    """Look at a host at these times, and return what the last judgement names."""
    found = []
    for time, count in zip(at, counts, strict=True):
        history.record([look(time, {REPLAYS: {f"GPU{gpu}": count * (gpu == 3) for gpu in range(8)}} | more)])
        found = history.daily(START + time)
    return found


DEATH = [0] * 10 + [50, 150, 350, 750, 1550]


def test_audits_that_come_some_minutes_early_miss_no_day(history, look):
    late = [0] * 9 + [500, 100, 400, 200, 350, 300]
    (trend,) = replays(history, look, [day * DAY + 1000 - each for day, each in enumerate(late)], DEATH)
    assert (trend.name, trend.hits) == (f"{REPLAYS}/GPU3", 5)
    assert 795 <= trend.figure <= 805, "a day's growth, not that of two"


def test_a_trend_of_days_ago_has_its_date_and_no_audit_repeats_it(history, look):
    assert replays(history, look, [day * DAY for day in range(15)], DEATH)
    history.record([look(30 * DAY, {REPLAYS: {"GPU0": 0}}, "n2")])
    assert history.daily(START + 30 * DAY) == []
    (trend,) = history.trends()
    assert "so on 5 of 5 days, most on 2026-09-18, the last day that was judged" in trends.sentence(trend, 20_730)
    assert "most today" in trends.sentence(trend, trend.day)


def test_a_trend_is_over_when_its_part_was_exchanged(history, look):
    serial = {f"GPU{gpu}": str(gpu) for gpu in range(8)}
    assert replays(history, look, [day * DAY for day in range(15)], DEATH, **{"gpu.serial": serial})
    replays(history, look, [20 * DAY], [0], **{"gpu.serial": serial | {"GPU3": "new"}})
    assert history.trends() == []
