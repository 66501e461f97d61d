"""Every fact replaced by every wrong type: nothing that reads facts crashes, and no other host's result is lost."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from nodetune import checks
from nodetune.api.facts_view import FactAbsentError, FactUnreadError
from nodetune.api.model import HostFacts, HostResult
from nodetune.audit import evaluate, fleet, gpu_users
from nodetune.checks import fleet_comparisons
from nodetune.config import profile
from nodetune.facts import catalogue, document
from nodetune.facts.machine import of
from nodetune.facts.memo import identities
from nodetune.guard.deploy import gres, node_state
from nodetune.guard.deploy.nodes import GuardedNode
from nodetune.provision import decide, results, running_driver
from nodetune.provision.facts import HostRefusedError
from nodetune.remediation import plan as planning
from tests.support.provisioning import lock, running, site

MACHINE = json.loads((Path(__file__).parents[1] / "data/synthetic/hgx-h200-untuned.json").read_text())
NAMES = sorted(MACHINE["facts"].keys() | {name for name in catalogue.names() if not name.endswith("*")})
FAMILIES = sorted({name.partition(".")[0] for name in NAMES})
DEEP = json.loads("[" * 300 + "]" * 300)
WRONG = (None, True, -1, 1 << 70, 1.5, "x", "x" * 70_000, [], [None], {}, {"x": None}, {"x": {}}, DEEP)


def replaced(data):
    """The value with one part of it replaced by each wrong type; of a list or an object's values, the first."""
    yield from WRONG
    if isinstance(data, dict):
        for name in list(data)[:12]:
            yield {key: each for key, each in data.items() if key != name}
            yield from ({**data, name: part} for part in replaced(data[name]))
    elif isinstance(data, list) and data:
        yield from ([part, *data[1:]] for part in replaced(data[0]))


def wrong(name):
    """The fact in all wrong ways."""
    ((kind, content),) = MACHINE["facts"].get(name, {"value": None}).items()
    yield {"each": {"GPU0": {"value": "x"}, "": {"unread": DEEP}}}
    if kind == "each" and content:
        subject, one = next(iter(content.items()))
        for part in replaced(one.get("value")):
            yield {"each": {**content, subject: {"value": part}}}
    yield from ({"value": part} for part in (replaced(content) if kind == "value" else WRONG))


class Everything:
    """All that reads the facts of a host."""

    def __init__(self, folder):
        self.site = site(folder)
        self.base, self.provisioned = document.from_data(MACHINE), running()
        self.checks = [(evaluate.required_facts([check]), evaluate.PreparedCheck(check)) for check in checks.load_all()]
        self.comparisons = [
            (evaluate.raw(each.needs), fleet.FleetComparison([each])) for each in fleet_comparisons.every().values()
        ]

    def read(self, name, fact):
        facts = HostFacts("bad", {**self.base.facts, name: fact}, self.base.about)
        known_as = identities(facts)
        findings = tuple(check.judge(facts, known_as) for needs, check in self.checks if name in needs)
        planning.plan(HostResult("bad", "ok", facts=facts, findings=findings))
        for collector in [collector for needs, collector in self.comparisons if name in needs]:
            collector.row(facts)
        for reader in (profile.matching, gpu_users.users, gres.lacking, node_state.notes, lambda it: of(it).data()):
            with suppress(FactAbsentError, FactUnreadError):
                reader(facts)
        assert isinstance(GuardedNode(HostResult("bad", "ok", facts=facts)).policy, dict)
        if name in decide.FACTS or name.startswith("packages."):
            self.provisions(HostFacts("bad", {**self.provisioned.facts, name: fact}, self.provisioned.about))

    def provisions(self, facts):
        for work in (
            lambda: decide.decide(facts, self.site, lock()),
            lambda: running_driver.takes_reboot(facts, "580.1"),
            lambda: running_driver.not_up(facts, "580.1"),
            lambda: running_driver.version(facts),
            lambda: results.users(facts),
        ):
            with suppress(HostRefusedError):
                work()


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return Everything(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_wrong_value_of_a_fact_crashes_what_reads_it(everything, family):
    tried = 0
    for name in (each for each in NAMES if each.partition(".")[0] == family):
        facts = [document.from_data({"facts": {name: data}}).facts[name] for data in wrong(name)]
        for fact in {repr(each): each for each in facts}.values():  # most are refused for the same reason
            everything.read(name, fact)
        tried += len(facts)
    assert tried >= len(WRONG)
