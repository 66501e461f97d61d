"""Finds out how many planted slow deaths the history names before the day of failure, and how many parts it names that are
healthy: a simulated fleet with bursts, storms, idle days, reboots, wraps and exchanged parts, a look a day, through the history itself."""

import math
import random
import statistics
import tempfile
import time
from pathlib import Path

import click

from benchmarks.support.measuring import COUNT, benchmark
from nodetune.api.model import Each, HostFacts, Value
from nodetune.history.history import History
from nodetune.history.points import DAY
from nodetune.history.snapshot import Sorter

START = 20_700 * DAY
GPUS = [f"GPU{number}" for number in range(8)]
KINDS = {  # leaf below the GPU → healthy rates a day (share of the parts, rate), the size of a burst, the rate at the failure
    "gpu.nvlink_errors": (((0.90, 0.02), (0.08, 1), (0.02, 20)), 20, 500),
    "gpu.ecc_corrected_volatile": (((0.95, 0.05), (0.04, 5), (0.01, 100)), 300, 1e6),
    "gpu.pcie_replay_counter": (((0.80, 0.3), (0.17, 5), (0.03, 60)), 60, 5000),
    "rdma.counters": (((0.70, 1), (0.25, 20), (0.05, 200)), 500, 1e5),
}
STORMY = "rdma.counters"
BITS = 32
"""Of each counter; some begin shortly before they wrap."""


class Counter:
    """A counter of one part; it may die from `onset` to `end`."""

    def __init__(self, kind, chance, onset=math.inf, end=math.inf):
        self._kind, self._chance, self._onset, self._end = kind, chance, onset, end
        self._rates, self._burst, self._worst = KINDS[kind]
        near = chance.random() < 1 / 4
        self.value, self._base = (2**BITS - chance.randrange(1, 1000) if near else 0), self._fresh()

    @property
    def read(self):
        """What the part shows."""
        return self.value % 2**BITS

    def _fresh(self):
        (rate,) = self._chance.choices([rate for _, rate in self._rates], [share for share, _ in self._rates])
        return rate * self._chance.lognormvariate(0, 0.4)

    def exchange(self):
        self.value, self._base = 0, self._fresh()

    def grow(self, day, load, storm):
        """Grow by a day."""
        mean = self._base * load + storm
        if self._onset <= day < self._end:
            ill = (day - self._onset) / (self._end - self._onset)
            mean += max(self._base, 1) ** (1 - ill) * self._worst**ill * load
        if self._chance.random() < 1 / 400:
            mean += self._burst * self._chance.lognormvariate(0, 1.5)
        self.value += max(0, round(self._chance.gauss(mean, mean**0.5))) if mean > 30 else self._poisson(mean)

    def _poisson(self, mean):
        limit, product, count = math.exp(-mean), self._chance.random(), 0
        while product > limit:
            product, count = product * self._chance.random(), count + 1
        return count


class Fleet:
    """Hosts with eight GPUs each, of which some die slowly."""

    def __init__(self, hosts, days, deaths, seed):
        self._chance = random.Random(seed)
        self._hosts = hosts
        self.planted = {}
        while len(self.planted) < deaths:
            onset = self._chance.uniform(10, days - 8)
            part = (
                f"n{self._chance.randrange(hosts)}",
                list(KINDS)[len(self.planted) % len(KINDS)],
                self._chance.choice(GPUS),
            )
            self.planted[part] = onset, onset + self._chance.uniform(4, 18)
        self._counters = {
            f"n{host}": {
                (kind, gpu): Counter(kind, self._chance, *self.planted.get((f"n{host}", kind, gpu), ()))
                for kind in KINDS
                for gpu in GPUS
            }
            for host in range(hosts)
        }
        self._boots = dict.fromkeys(self._counters, 0)
        self._serials = {(host, gpu): 0 for host in self._counters for gpu in GPUS}

    def day(self, day):
        """Yield (host, facts) after another day."""
        chance, storm = self._chance, {}
        if chance.random() < 1 / 8:
            first = chance.randrange(self._hosts)
            storm = dict.fromkeys(range(first, first + 16), chance.lognormvariate(7, 1))
        for number, (host, counters) in enumerate(self._counters.items()):
            self._accidents(host, counters, day)
            load = chance.choice((0.1, 0.6, 1, 1, 1.2))
            for (kind, _), counter in counters.items():
                counter.grow(day, load, storm.get(number, 0) if kind == STORMY else 0)
            yield host, self._facts(host, counters)

    def _accidents(self, host, counters, day):
        if self._chance.random() < 1 / 30:
            self._boots[host] += 1
            for counter in counters.values():
                counter.value = 0
        for (kind, gpu), counter in counters.items():
            _, end = self.planted.get((host, kind, gpu), (0, math.inf))
            if self._chance.random() < 1 / 6000 or day - 1 < end <= day:
                self._serials[host, gpu] += 1
                counter.exchange()

    def _facts(self, host, counters):
        values = {kind: {gpu: counters[kind, gpu].read for gpu in GPUS} for kind in KINDS}
        facts = {kind: Each({gpu: Value(value) for gpu, value in of.items()}) for kind, of in values.items()}
        links = values["gpu.nvlink_errors"]
        facts["gpu.nvlink_errors"] = Each({gpu: Value({"recovery": {"7": links[gpu]}}) for gpu in GPUS})
        ports = values[STORMY]
        facts[STORMY] = Each({f"mlx5_{gpu[3:]}/1": Value({"symbol_error": ports[gpu]}) for gpu in GPUS})
        serials = {gpu: Value(f"{host}-{gpu}-{self._serials[host, gpu]}") for gpu in GPUS}
        return facts | {"gpu.serial": Each(serials), "host.boot_id": Value(str(self._boots[host]))}


def part_of(trend):
    """(host, kind, GPU) of a trend."""
    kind, subject = trend.name.split("/")[:2]
    return trend.host, kind, subject.replace("mlx5_", "GPU")


@benchmark(__doc__, hosts=12, days=40, deaths=4)
@click.argument("hosts", default=1000, type=COUNT)
@click.argument("days", default=365, type=click.IntRange(min=30))
@click.argument("deaths", default=40, type=COUNT)
@click.argument("seed", default=1)
def main(hosts, days, deaths, seed):
    fleet, sorter, named, false, spent = Fleet(hosts, days, deaths, seed), Sorter(), {}, {}, 0.0
    with tempfile.TemporaryDirectory() as folder:
        with History(f"{folder}/history.db") as history:
            for day in range(days):
                facts = list(fleet.day(day))
                begun, at = time.process_time(), START + day * DAY
                for host, each in facts:
                    history.take(sorter.look(HostFacts(host, each, {"time": at})))
                history.flush()
                for trend in history.daily(at):
                    judge(fleet.planted, part_of(trend), day, named, false)
                spent += time.process_time() - begun
        size = sum(each.stat().st_size for each in Path(folder).iterdir()) / 1e6
    early = [fleet.planted[part][1] - day for part, day in named.items()]
    wrong = sum(map(len, false.values()))
    rate = 1000 * wrong / hosts / days
    warning = f"{statistics.median(early):.1f} days before" if early else "-"
    print(f"{hosts} hosts, {days} days, {deaths} slow deaths; the history took {spent:.0f} s CPU and has {size:.0f} MB")
    print(
        f"named before the day of failure: {len(named)}, median {warning}; not named: {sorted(fleet.planted.keys() - named.keys())}"
    )
    print(f"{wrong} false alarms, {rate:.2f} in 1,000 host-days")
    return {"simulated_year": f"{len(named)} of {deaths}, median {warning}; {rate:.2f}"}


def judge(planted, part, day, named, false):
    """Count a trend: the first of a slow death, or a false alarm; one a week of a part counts once."""
    onset, end = planted.get(part, (math.inf, math.inf))
    if onset <= day < end:
        named.setdefault(part, day)
    elif not onset <= day <= end + 4:
        seen = false.setdefault(part, [])
        if not seen or day - seen[-1] > 7:
            seen.append(day)


if __name__ == "__main__":
    main()
