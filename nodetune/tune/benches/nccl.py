"""Tune NCCL: its variables on these hosts. A block of settings is one measurement, paired in time, with checked data.

In the screening, settings share processes as far as communicators can carry them; a finalist and the default have a process
each on every GPU, with variables, as jobs will have them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodetune.api.facts_view import FactUnreadError
from nodetune.api.model import HostFacts
from nodetune.audit import gpu_users
from nodetune.checks.shared.nccl_settings import effective
from nodetune.facts import machine as machines
from nodetune.foundation import text
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.tune import document
from nodetune.tune.benches import nccl_cases, nccl_space, nccl_tuner, runs
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.benches.nccl_space import Survey
from nodetune.tune.benches.runs import Faults, TrialFigures
from nodetune.tune.model import DEFAULT, BenchError, Case, Parameter, Setting, Trial
from nodetune.verify import figures
from nodetune.verify import run as verify_run
from nodetune.verify.model import Figure
from nodetune.verify.run import Measure

LIBRARIES = "nccl.libraries"
FACTS = {*verify_run.FACTS, *runs.XIDS, "nccl.settings", LIBRARIES, "gpu.driver_version", "rdma.ports"}


class NcclBench:
    """NCCL on one node or on several together. Raise BenchError if nothing can be measured."""

    subject = "nccl"
    arms, rounds = 12, 2
    """A block resolves most cases to less than 1 %: it needs few others."""

    def __init__(
        self,
        targets: Sequence[Target],
        wanted: NcclRequest,
        connection: ConnectionOptions,
        how: Measure,
        facts: Callable[..., dict[str, HostFacts | str]] = runs.facts,
    ) -> None:
        self._targets, self.wanted, self._connection, self._how = list(targets), wanted, connection, how
        self._env, self._collect = dict(wanted.env), facts
        self._block: list[Setting] = []
        self._applied, self._number = False, 0
        self._ready: dict[Setting, Trial] = {}
        self._amounts: dict[str, list[int]] = {}
        self._facts = self._looked_at(wanted.allow_busy)
        self._faults, self.xids_unknown = runs.faults(self._facts)
        first = self._surveyed()
        self.survey = self._survey(first.found)
        self._cases = tuple(dict.fromkeys(nccl_cases.case_of(each, wanted) for each in first.found))
        self._amounts = nccl_cases.amounts(first.found)
        self._keys = {nccl_cases.case_of(each, wanted).id: nccl_cases.key(each) for each in first.found}
        self._ways = self._ways_of(first.found)
        self.notes = [*first.notes, *nccl_cases.bursts(first.found)]
        """Notes from the hosts on the first run: sizes for which memory or time was insufficient."""
        self.left_out: dict[str, str] = {}
        self._parameters, self.left_out = nccl_space.parameters(self.survey, wanted.aim, wanted.only)
        if wanted.plugin:
            ctas = [each for each in self._parameters if each.name in nccl_tuner.RAISES]
            self._parameters = ctas + nccl_space.algorithms(self.survey, wanted.names)

    def _looked_at(self, allow_busy: bool) -> dict[str, HostFacts | str]:
        """Return the facts of all hosts, which must be reachable and free."""
        found = self._collect(self._targets, FACTS, self._connection)
        for host, each in sorted(found.items()):
            if isinstance(each, str):
                raise BenchError(runs.of_host(host, each))
            try:
                users = "" if allow_busy else gpu_users.users(each)
            except FactUnreadError as problem:
                raise BenchError(f"{host}: {problem}: fix this or use --allow-busy") from None
            if users:
                raise BenchError(f"{host}: its GPUs are in use by {users}: end these processes or use --allow-busy")
        return found

    def _surveyed(self) -> TrialFigures:
        """Measure the default once: NCCL's version, what it uses, and the possible cases."""
        came = self._run([DEFAULT])
        if came.wrong:
            raise BenchError(f"the default itself gives wrong data: {came.wrong}: nodetune verify --suite nccl")
        if came.problem or not came.found:
            raise BenchError(
                came.failure or came.skipped or "nothing was measured: nodetune verify --suite nccl says why"
            )
        return came

    def _survey(self, found: Sequence[Figure]) -> Survey:
        about = max(found, key=figures.size).about
        nics = about.get("nics")
        ports = [each for host in self._facts.values() for each in _ports(host)]
        layers = {each.get("link_layer") for each in ports if each.get("state") == "ACTIVE"}
        return Survey(
            version=str(about.get("nccl") or ""),
            library=str(about.get("library") or ""),
            nodes=nccl_cases.count(about.get("nodes"), len(self._targets)),
            gpus=nccl_cases.count(about.get("gpus"), 2),
            transport="+".join(
                sorted({part for each in found for part in nccl_cases.way(each)["transport"].split("+")})
            ),
            link=str(about.get("link") or ""),
            nvls=any(each.about.get("nvls") is True for each in found),
            nics=tuple(map(str, nics)) if isinstance(nics, list) else (),
            roce=(layers == {"Ethernet"}) if layers in ({"Ethernet"}, {"InfiniBand"}) else None,
            set={**self._in_files(), **nccl_cases.settings(found), **self._env},
        )

    def _in_files(self) -> dict[str, str]:
        """Return the NCCL variables that the hosts' files set in a login session."""
        found: dict[str, str] = {}
        for each in self._facts.values():
            settings = _value(each, "nccl.settings") or []
            for name in {str(one["name"]) for one in settings}:
                winner = effective(settings, name)
                found |= {name: str(winner["value"])} if winner else {}
        return found

    @property
    def parameters(self) -> Sequence[Parameter]:
        return self._parameters

    @property
    def cases(self) -> Sequence[Case]:
        return self._cases

    def allowed(self, setting: Setting) -> bool:
        """Return whether the user guide allows these values together. What is chosen by size is tried alone."""
        return not (self.wanted.plugin and len(setting) > 1) and nccl_space.allowed(setting, self.survey)

    def finalists(
        self, found: Sequence[Setting], gains: Mapping[Setting, Mapping[str, float]], made: Sequence[Trial]
    ) -> list[Setting]:
        """Return what is confirmed: with the plugin, the setting that has the best of each size."""
        if not self.wanted.plugin:
            return list(found)
        best = nccl_tuner.best_by_size(self._keys, gains, made, self.survey)
        return [best] if best else []

    def begin(self, block: Sequence[Setting], *, applied: bool) -> None:
        """Expect these settings next: they are measured together when the first of them is."""
        self._block, self._applied, self._ready = list(block), applied, {}

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:
        """Return the trial of a setting, measured along with the default and the rest of its block.

        What is measured again, as it failed or was disturbed, has the default and others of that kind with it.
        """
        if setting not in self._ready:
            again = [each for each, trial in self._ready.items() if not trial.counts]
            block = [setting, *again] if self._ready or setting not in self._block else self._block
            self._ready = {**self._ready, **self._trials(list(dict.fromkeys([DEFAULT, *block])), cases)}
        self._block = [each for each in self._block if each != setting]
        return self._ready.pop(setting)

    def _trials(self, block: Sequence[Setting], cases: Sequence[Case]) -> dict[Setting, Trial]:
        """Measure settings together; if nothing comes of it, measure each with the default to find out which is at fault."""
        began = time.monotonic()
        came = self._run(block, cases)
        if not came.found and len(block) > 2 and not (came.rival or came.unrestored):
            apart: dict[Setting, Trial] = {}
            for each in block[1:]:
                apart = {**self._trials([DEFAULT, each], cases), **apart}
            return apart
        new, unknown = self._new_faults()
        came.problem = came.failure if not came.found else came.problem or self._other_shape(came.found)
        values = nccl_cases.values(came.found, block, self.wanted)
        seconds = round((time.monotonic() - began) / len(block), 3)
        found = {}
        for number, each in enumerate(block):
            part = _of_setting(came, number)
            trial = runs.trial(each, cases, part, values[each])
            if new and not trial.banned and (each != DEFAULT or len(block) == 1):
                trial = Trial(each, banned=runs.in_words(new))
            about = {**self._observed(part, each), "xids": unknown or "none"}
            if trial.counts and nccl_tuner.ROWS_NAME in about["unread"]:
                trial = Trial(each, failed="NCCL did not take the rows of the tuner plugin")
            found[each] = replace(trial, about=about, seconds=seconds)
        return found

    def _run(self, block: Sequence[Setting], cases: Sequence[Case] = ()) -> TrialFigures:
        """Measure settings against each other on the hosts."""
        self._number += 1
        some = cases and len(cases) < len(self._cases)
        way = nccl_cases.NcclPath(
            apart=self._applied,
            rounds=nccl_cases.APPLIED if self._applied else nccl_cases.SCREENED,
            seed=self._number,
            amounts=self._amounts,
            fixed=sorted(self.survey.set) if hasattr(self, "survey") else [],
            only=[self._keys[case.id] for case in cases] if some else [],
        )
        item = nccl_cases.measurement(self.wanted, block, way)
        return runs.measured(self._targets, [item], self._env, self._how, self._connection)

    def _other_shape(self, found: Sequence[Figure]) -> str:
        """Return the GPUs that took part, if their number differs from the default, which prevents a comparison."""
        for each in found:
            gpus = nccl_cases.count(each.about.get("gpus"), self.survey.gpus)
            nodes = nccl_cases.count(each.about.get("nodes"), self.survey.nodes)
            if (gpus, nodes) != (self.survey.gpus, self.survey.nodes):
                return f"{text.count(gpus, 'GPU')} of {text.count(nodes, 'node')} took part, a different number than by default"
        return ""

    def _new_faults(self) -> tuple[Faults, str]:
        """Return the driver's reports since the last call, and why they are unknown."""
        found, unknown = runs.faults(self._collect(self._targets, runs.XIDS, self._connection))
        new = frozenset(found - self._faults)
        self._faults |= found
        return new, unknown

    def _observed(self, came: TrialFigures, setting: Setting) -> dict[str, Any]:
        """Return the actual path of the data and, of a setting's own process, the variables that NCCL did not read."""
        ways, read = self._ways_of(came.found), nccl_cases.settings(came.found)
        apart = self._applied and came.found
        rows = {nccl_tuner.ROWS_NAME: len(nccl_tuner.rows(setting))}
        unread = [name for name, value in setting if read.get(name, "") != str(rows.get(name, value))] if apart else []
        changed = sorted(name for name, way in ways.items() if way != self._ways.get(name))
        return {"used": ways, "changed": changed, "unread": unread}

    def _ways_of(self, found: Sequence[Figure]) -> dict[str, dict[str, Any]]:
        return {nccl_cases.case_of(each, self.wanted).id: nccl_cases.way(each) for each in found}

    def provenance(self) -> Mapping[str, Any]:
        """Return the hosts and conditions of the result."""
        survey, hosts = self.survey, sorted(self._facts)
        known = [machines.of(each) for each in self._facts.values() if not isinstance(each, str)]
        return {
            "nccl": survey.version,
            "driver": sorted({each.driver for each in known}),
            "machines": [each.like for each in known[:1]],
            "alike": len({repr(each.like) for each in known}) == 1,
            "hosts": hosts,
            "gpus": survey.gpus,
            "transport": survey.transport,
            "link": survey.link,
            "nics": list(survey.nics),
            "set": {name: value for name, value in sorted(survey.set.items()) if name not in nccl_cases.NO_NCCL_HERE},
            "objective": self.wanted.aim,
            "ratio": self.wanted.ratio,
            "cases": [each.id for each in self._cases],
            "dtype": self.wanted.dtype,
            "asked": self.wanted.asked,
        }

    def proposal(self, setting: Setting) -> Mapping[str, Any]:
        """Return the setting as part of a site file: lines of /etc/nccl.conf that apply writes and rolls back."""
        lines = nccl_tuner.variables(setting)
        if not lines:
            return {}
        why = f"measured by nodetune tune nccl with NCCL {self.survey.version}"
        added: list[dict[str, Any]] = [
            {
                "id": f"site-{name.lower().replace('_', '-')}",
                "nccl_conf": name,
                "accept": value,
                "set": value,
                "why": why,
            }
            for name, value in lines
        ]
        installed = nccl_cases.installed(
            self.survey.library, self.survey.version, [_value(each, LIBRARIES) for each in self._facts.values()]
        )
        if installed:
            version, accept = self.survey.version, {"contains": installed}
            added.append(document.stale(self.subject, LIBRARIES, "NCCL", version, accept, "-library"))
        return {"add": added, "checks": {"nccl-tuning-forced": {"severity": "info"}}}


def _of_setting(came: TrialFigures, number: int) -> TrialFigures:
    """Return what was measured of one setting of a block, with what holds for all of them."""
    subject = nccl_cases.SUBJECT.format(number)
    found = [each for each in came.found if each.subject == subject]
    missing = [each for each in came.missing if each.subject in ("", subject)]
    return TrialFigures(found, missing, problem=came.problem)


def _value(of: HostFacts | str, name: str) -> Any:
    found = runs.value(of, name)
    return None if isinstance(found, str) else found


def _ports(of: HostFacts | str) -> list[Mapping[str, Any]]:
    found = _value(of, "rdma.ports")
    return [each for each in found.values() if isinstance(each, Mapping)] if isinstance(found, Mapping) else []
