"""A host whose NCCL is as fast as a test says: it plays the events of measurements, and the facts."""

import random

from nodetune.api.model import Each, HostFacts, Unread, Value
from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.remote.live_pool import Ended
from nodetune.tune.benches.nccl import NcclBench
from nodetune.tune.benches.nccl_cases import NcclRequest
from tests.support import verify_records

REACH = ConnectionOptions(None, None, 8, "local", SessionOptions(40))


class Host:
    """A host whose NCCL is as fast as the test says. Plays the events of a measurement, and the facts."""

    def __init__(self):
        self.env, self.plans, self.extra, self.others, self.ended = [], [], [], {}, ""
        self.lines, self.unread, self.users = [], "", []
        self.notes, self.libraries = [], []
        self.rows = lambda value: str(len(value.split(";")))
        self.set, self.files, self.about = {}, [], {}
        self.spoils = lambda env: []
        self.fails = lambda settings: ""
        self.step = lambda name, size, env: 10.0
        self.call = lambda name, size, env: 20.0
        self.rate = lambda name, size, env: 100.0 * (1.05 if env.get("NCCL_MIN_CTAS") == "32" else 1.0)

    def how(self, targets, plan_for, reach):
        for target in targets:
            plan = plan_for(target)
            self.plans.append(plan)
            self.env.append(plan["env"])
            (item,) = plan["measurements"]
            first = target.name == min(each.name for each in targets)
            failed = self.fails(item["options"]["settings"])
            if failed and first:
                yield target, {"record": {"measurement": item["name"], "failed": failed}}
            for record in self._records(item, plan["env"]) if first and not failed else ():
                yield target, {"record": record}
            for text in self.notes if first else ():
                yield target, {"note": {"measurement": item["name"], "text": text}}
            yield target, {"done": {"measurement": item["name"], "others": self.others}}
            problem = type("Problem", (), {"state": "lost", "message": self.ended})() if self.ended else None
            yield target, Ended(problem, 1.0)

    def _records(self, item, env):
        found = [each for each in self.extra if isinstance(each, dict)]
        for number, setting in enumerate(item["options"]["settings"]):
            given = {**env, **{name: str(value) for name, value in setting.items()}}
            found += self._of_setting(item["options"], given, number)
        return found

    def _of_setting(self, options, env, number):
        settings = {**self.set, **{name: value for name, value in env.items() if name not in self.extra}}
        settings |= {name: self.rows(value) for name, value in settings.items() if name == "TUNER_ROWS"}
        about = {
            **verify_records.NCCL,
            "gpus": 2,
            "link": "NVL",
            "algorithm": "RING",
            "settings": settings,
            **self.about,
        }
        subject = f"setting {number}"
        found = [{**each, "subject": subject} for each in self.spoils(env)]
        for size in options.get("sizes", ()):
            for name in options["collectives"]:
                value = self.rate(name, size, env)
                if value is not None:
                    found.append(record(name, value, size, about, subject=subject))
        for size in options.get("latency_sizes", ()):
            names = options["latency_collectives"]
            found += [record(f"{name}_latency", 10.0, size, about, "µs", "lower", subject) for name in names]
        for size in options.get("call_sizes", ()):
            for name in options["call_collectives"]:
                value = self.call(name, size, env)
                if value is not None:
                    found.append(record(f"{name}_call", value, size, about, "µs", "lower", subject))
        for size in options.get("overlap_sizes", ()):
            for name in options["overlap_collectives"]:
                value = self.step(name, size, env)
                if value is not None:
                    known = {**about, "amounts": [7, 4]}
                    found.append(record(f"{name}_step", value, size, known, "ms", "lower", subject))
        return found

    def options(self):
        """The options of the last measurement."""
        return self.plans[-1]["measurements"][0]["options"]

    def facts(self, targets, names, reach):
        users = Value(self.users) if isinstance(self.users, list) else self.users
        given = {
            "xid.events": Unread(self.unread) if self.unread else Value(tuple(self.lines)),
            "xid.nvswitch": Value(()),
            "xid.fallen_off_bus": Value(()),
            "nccl.settings": Value(tuple(self.files)),
            "nccl.libraries": Value(tuple(self.libraries)),
            "gpu.compute_running_processes": Each({"GPU0": users}),
        }
        base = verify_records.facts(host="gpu1").facts
        return {target.name: HostFacts(target.name, {**base, **given}) for target in targets}

    def bench(self, hosts=("gpu1",), **wanted):
        targets = [Target(name) for name in hosts]
        return NcclBench(targets, NcclRequest(**{"objective": "bandwidth", **wanted}), REACH, self.how, self.facts)


def record(metric, value, size, about, unit="GB/s", better="higher", subject="setting 0"):
    return verify_records.record(
        "nccl_settings", metric, subject, value, unit, better, **{**about, "size": size, "in_place": False}
    )


def noisy(seed, gain):
    """Return rates that wander by 0.3 % from run to run; `gain` is the setting's own."""
    generator = random.Random(seed)
    return lambda name, size, env: 100.0 * generator.gauss(1.0, 0.003) * gain(name, size, env)
