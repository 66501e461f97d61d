"""Reads of several hosts at once: they wait for each other, and the first tells the sum."""

import queue
import threading
from types import SimpleNamespace

import pytest

from nodetune.measurements import disk_hosts
from nodetune.measurements.host import report as reporting
from nodetune.verify.evaluate import judge
from nodetune.verify.model import PASS, SHORT, UNKNOWN
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records

RATES = {0: [4.0, 3.0, 3.0], 1: [1.0, 2.0], 2: [2.0, 1.0]}
"""GB/s of each host, in the order of its runs: the first one reads alone first."""


class Host:
    """A report of one of three hosts that are threads here."""

    def __init__(self, number, others, told):
        self.self, self.hosts, self.others, self.told = number, ["a", "b", "c"], others, told

    def tell(self, topic, data):
        for number in range(3):
            self.others[self.self, number, topic].put(data)

    def hear_all(self, topic, _seconds):
        return {n: self.others[n, self.self, topic].get(timeout=60) for n in range(3) if n != self.self}

    def left(self):
        return 60.0

    def step(self, text):
        pass

    def result(self, subject, samples, unit, metric, **about):
        self.told[metric] = (subject, samples, unit, about)


class Queues(dict):
    def __missing__(self, key):
        return self.setdefault(key, queue.Queue())


def test_hosts_read_alone_and_then_all_at_once():
    others, told, fios = Queues(), {}, {}
    for number, rates in RATES.items():
        left = iter(rates * 2 if number else [4.0, 3.0, 3.0, 3.0])
        sample = lambda _metric, left=left: {"bytes": next(left) * 1e9}  # noqa: E731
        fios[number] = SimpleNamespace(size=64 << 20, sample=sample)
    options = {"repeats": 2, "demand": 5}
    threads = [
        threading.Thread(target=disk_hosts._read, args=(fio, "/data", options, Host(number, others, told)))
        for number, fio in fios.items()
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    subject, samples, unit, about = told["read_together"]
    assert (subject, samples, unit) == ("3 hosts, /data", [6.0, 6.0], "GB/s")
    assert (about["each"], about["demand"], about["hosts"], about["alone"]) == ([3.0, 2.0, 1.0], 5.0, 3, 4.0)
    assert told["together_share"][1] == [50.0, 50.0]


def test_a_host_that_sends_no_rate_is_refused():
    others = Queues()
    others[1, 0, "read 0"].put("much")
    others[2, 0, "read 0"].put(1.0)
    with pytest.raises(reporting.MeasurementError, match="not a rate"):
        disk_hosts._meet("read 0", 1.0, Host(0, others, {}))


def test_one_host_has_nobody_to_read_with():
    with pytest.raises(reporting.SkipError, match="--multi-node"):
        disk_hosts.measure({}, SimpleNamespace(hosts=["a"]))


@pytest.mark.parametrize(("demand", "status"), [(5, PASS), (7, SHORT), (None, UNKNOWN)])
def test_the_sum_has_to_reach_what_the_site_demands(demand, status):
    about = {"demand": demand} if demand else {}
    found = records.read([records.record("disk_hosts", "read_together", "3 hosts, /data", 6.0, unit="GB/s", **about)])
    (verdict,) = judge(found, {found[0].host: records.h200()})
    assert verdict.status == status


def test_the_demand_takes_all_hosts_at_once():
    whole = SuiteRequest(only=("disk_hosts",), disk="/data", multi_node=True, demand=40)
    assert whole.items[0]["options"] == {"dir": "/data", "demand": 40}
    assert "--demand 40 --multi-node" in " ".join(whole.words)
    with pytest.raises(ValueError, match="--only disk_hosts --multi-node"):
        SuiteRequest(only=("disk_hosts",), disk="/data", demand=40)
