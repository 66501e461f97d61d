"""Settings of NCCL against each other, paired in time: a process that starts again for each is too uneven to compare them.

`settings` are variables with values; an empty one is the default. Settings that communicators can carry (nccl_config) share
a process on each GPU, with the default at three places among them; others have a process each. With `apart`, each setting has
a process of its own with all its variables, as they will be applied. Processes take turns: only one of them works at a time.

Figures for each setting, the subject `setting 0` …: busbw in GB/s (`sizes`), µs of small messages (`latency_sizes`), and the
ms of a step of collectives and bf16 products that begin together, until both are done (`overlap_sizes`: `all_reduce_step`).
`call_sizes` gives µs a call, launched one by one (`all_reduce_call`): the CPU takes part, as in jobs without CUDA graphs.
A sample is one round: all settings, one after another, in random order. Data are checked first at each place.

Manually: two communicators with different ncclConfig_t, and cudaGraphLaunch of each in turn. nccl-tests cannot do it.
Options: settings, apart, fixed (variables that the site has set), rounds, seed, amounts (the work of each case, as reported by an
earlier run), plugin (source of the tuner plugin, for settings with rows), only (the keys of cases, `all_reduce_call 65536`; empty: all), ratio (time of the products to that of the collectives), collectives, sizes, latency_collectives,
latency_sizes, call_collectives, call_sizes, overlap_collectives, overlap_sizes, dtype, gpus, n (rows of the matrices), check, nccl, library (of cuBLASLt).
"""

import json
import statistics
import time

from nodetune.measurements.host import process_team
from nodetune.measurements.host import report as reporting
from nodetune.measurements.nccl_support import nccl_cases, nccl_communicators, nccl_config, nccl_log, nccl_ops
from nodetune.measurements.nccl_support import nccl_plugin, nccl_results, nccl_run
from . import nccl

SECONDS = 180.0
SCOPE = "collective"
GPUS = 2
ORDER = 106
SUITES = {}
TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 1}}
SIZE_MATTERS = True
ROUNDS = 6
DEFAULTS = 3
"""Places of the default among others: the first, in the middle, and the last."""

MAX_SETTINGS = 16


def measure(options, report):
    asked = checked(options)
    asked["settings"] = nccl_plugin.with_variables(asked["settings"], asked["plugin"], report)
    groups = []

    def buffers(version):
        groups.extend(grouped(asked, version))
        return 2 * len(groups)

    cases, jobs, conditions, _ = nccl_run.prepared(asked, planned, report, buffers)
    jobs = [dict(job, cases=cases, until=time.monotonic() + report.left() - nccl_run.RESERVE) for job in jobs]
    members = [(group, job) for group in groups for job in jobs]
    ranks = [
        (
            "rank {} on {}".format(job["rank"], job["gpu"]),
            lambda out, given, job=dict(job, **group): nccl_communicators.take_part(job, out, given),
        )
        for group, job in members
    ]
    report.step("starting {} ranks".format(len(ranks)))
    trouble = nccl_run.Others(report).check if len(report.hosts) > 1 else None
    with process_team.Team(ranks, trouble) as team:
        until = time.monotonic() + report.left() - nccl_run.LAST
        turns = Turns(team, groups, len(jobs), team.events(until), report)
        turns.join()
        Results(cases, groups, turns, conditions, asked, report).tell(rounds(turns, cases, groups, asked))
        turns.end()


def checked(options):
    given = dict({"collectives": [], "latency_collectives": [], "sizes": options.get("overlap_sizes")}, **options)
    asked = nccl_cases.checked(given, nccl.SIZES)
    defaults = {
        "settings": [{}],
        "apart": False,
        "fixed": [],
        "rounds": ROUNDS,
        "seed": 0,
        "amounts": {},
        "only": [],
        "plugin": "",
    }
    kinds = {kind + part: [] for kind in ("call_", "overlap_") for part in ("collectives", "sizes")}
    for name, value in dict(defaults, ratio=1.0, **kinds).items():
        asked.setdefault(name, value)
    if not 1 <= len(asked["settings"]) <= MAX_SETTINGS:
        raise reporting.MeasurementError("settings: 1 to {} are possible".format(MAX_SETTINGS))
    return asked


def planned(asked, ranks):
    """Yield the cases in their order."""
    for kind, words in (("_latency", "latency_"), ("_call", "call_"), ("", ""), ("_step", "overlap_")):
        for size in sorted(asked[words + "sizes"]):
            for name in asked[words + "collectives"]:
                yield from (
                    case for case in _case(name, size, ranks, kind) if case["key"] in (asked["only"] or [case["key"]])
                )


def _case(name, size, ranks, kind):
    counted = nccl_ops.counted(name, size, ranks)
    if counted:
        case = {"name": name, "size": counted, "in_place": False, "latency": kind in ("_latency", "_call")}
        case.update(products=kind == "_step", recorded=kind in ("", "_latency"))
        yield dict(case, metric=name + kind, key="{}{} {}".format(name, kind, counted))


def grouped(asked, version):
    """Return the processes on each GPU: variables, and the places with the setting that each has."""
    found = {}
    for number, setting in enumerate(asked["settings"]):
        process, making, fields = nccl_config.split(setting, version, asked["fixed"])
        if asked["apart"]:
            process, making, fields = {name: str(value) for name, value in setting.items()}, {}, {}
        key = (json.dumps(process, sort_keys=True), number if asked["apart"] else "")
        group = found.setdefault(key, {"process": process, "places": []})
        group["places"].append({"setting": number, "making": making, "fields": fields})
    for number, group in enumerate(found.values()):
        group["places"] = _spread(group["places"], asked, number)
    return nccl_communicators.shuffled_list(list(found.values()), asked["seed"])


def _spread(places, asked, number):
    """Return places in random order, with those of the default at the start, in the middle and at the end."""
    default = [each for each in places if not asked["settings"][each["setting"]]]
    others = [each for each in places if each not in default]
    others = nccl_communicators.shuffled_list(others, asked["seed"], number)
    if asked["apart"] or not default or not others:
        return default + others
    half = len(others) // 2
    return default + others[:half] + default + others[half:] + default


class Turns:
    """Lets the processes work one after another: all ranks of one group, then those of the next."""

    def __init__(self, team, groups, gpus, events, report):
        self._team, self._gpus, self._events, self._report = team, gpus, events, report
        self._groups = len(groups)
        self._kept = {}

    def join(self):
        """Exchange the ids of all communicators with the other hosts, and make the communicators."""
        own = [self._answers("ready", group) for group in range(self._groups)]
        ids = [next((each for each in answers if each), None) for answers in own]
        report = self._report
        if len(report.hosts) > 1:
            report.tell("nccl ready", ids)
            heard = list(report.hear_all("nccl ready", report.left() - nccl_run.PATIENT).values())
            ids = [mine or next(each[at] for each in heard if each[at]) for at, mine in enumerate(ids)]
        for group in range(self._groups):
            self._send(group, ids[group])
        for group in range(self._groups):
            self._answers("joined", group)

    def do(self, kind, group, case, turn=0):
        """Let a group do something, and return the answers of its ranks here."""
        self._send(group, [kind, case, turn])
        return self._answers(kind, group)

    def end(self):
        for group in range(self._groups):
            self._send(group, ["end", 0, 0])
        for _ in self._events:
            pass
        if len(self._report.hosts) > 1:
            self._report.tell(nccl_run.DONE, True)

    def _members(self, group):
        return range(group * self._gpus, (group + 1) * self._gpus)

    def _send(self, group, content):
        for number in self._members(group):
            self._team.members[number].send(json.dumps(content))

    def _answers(self, kind, group):
        waiting, found, kept = set(self._members(group)), {}, self._kept
        while waiting - set(found):
            ready = [number for number in waiting - set(found) if kept.get((kind, number))]
            for number in ready:
                found[number] = kept[kind, number].pop(0)
            if not ready:
                number, said, content = next(self._events, (None, None, None))
                if number is None:
                    raise reporting.MeasurementError("the ranks ended too early")
                if said == "step":
                    if number == 0:
                        self._report.step(content)
                else:
                    kept.setdefault((said, number), []).append(content)
        return [found[number] for number in sorted(found)]


def rounds(turns, cases, groups, asked):
    """Yield the reports of the ranks: ("set up", case, group, answers), then ("turn", case, group, seconds at each place)."""
    for products in (False, True):  # clocks are lower just after products, which small messages show
        part = [number for number, case in enumerate(cases) if case["products"] == products]
        for group in range(len(groups)):
            for case in part:
                yield "set up", case, group, turns.do("set up", group, case)
        for turn in range(asked["rounds"]):
            for case in part:
                for group in nccl_communicators.shuffled(range(len(groups)), asked["seed"], case, turn):
                    seconds = turns.do("turn", group, case, turn)[0]
                    if seconds is None:
                        return
                    yield "turn", case, group, seconds


class Results:
    """Puts together what the places of a setting gave, and reports it: the first host the figures, each host its faults."""

    def __init__(self, cases, groups, turns, conditions, asked, report):
        self._cases, self._groups, self._conditions = cases, groups, conditions
        self._asked, self._report = asked, report
        self._seconds, self._known = {}, {}

    def tell(self, said):
        for kind, case, group, content in said:
            for at, place in enumerate(self._groups[group]["places"]):
                key = case, place["setting"]
                if kind == "set up":
                    parts = [
                        dict(each["places"][at], amounts=each["amounts"], launched=each["launched"]) for each in content
                    ]
                    self._known.setdefault(key, []).append(parts)
                else:
                    self._seconds.setdefault(key, {}).setdefault((group, at), []).append(content[at])
        for key in sorted(self._known):
            self._one(*key)

    def _one(self, case, setting):
        """Report a case of a setting. Rounds that only some of its places have do not count."""
        subject, ranks = "setting {}".format(setting), self._conditions["gpus"]
        parts = [part for place in self._known[case, setting] for part in place]
        told, case_number = self._cases[case], case
        wrong = sum(part["wrong"] for part in parts)
        if wrong:
            text = "{}: {} words of {}".format(
                nccl_results.gpus.WRONG, wrong, nccl_communicators.nccl_rank.in_words(told)
            )
            self._report.failed(text, subject, told["metric"])
        places = list(self._seconds.get((case_number, setting), {}).values())
        if self._report.self or any(part["wrong_everywhere"] for part in parts) or not places:
            return
        means = [statistics.mean(each) for each in zip(*places)]
        path = nccl_log.merged([part["path"] for part in parts])
        about = dict(self._conditions, **nccl_results.described(told, path, parts[0]["chosen"]))
        about.update(size=told["size"], in_place=False, dtype=self._asked["dtype"], amounts=parts[0]["amounts"])
        about.update(checked=self._asked["check"], launched=parts[0]["launched"])
        about["places"] = [self._value(told, statistics.median(each), ranks)[0] for each in places]
        samples, unit, better = zip(*[self._value(told, each, ranks) for each in means])
        self._report.result(subject, list(samples), unit[0], better[0], told["metric"], **about)

    def _value(self, case, seconds, ranks):
        if case["products"]:
            return round(1e3 * seconds, 5), "ms", "lower"
        if case["latency"]:
            return round(1e6 * seconds, 4), "µs", "lower"
        return round(nccl_ops.bandwidths(case["name"], case["size"], seconds, ranks)[1], 4), "GB/s", "higher"
