"""Every fact replaced by every wrong type: nothing that reads facts crashes, and no other host's result is lost."""

import json
from pathlib import Path

import pytest
import yaml

from nodetune.api.model import HostFacts, HostResult
from nodetune.audit import auditor
from nodetune.audit.selection import Selection, comparing
from nodetune.config import profile
from nodetune.facts import document, gate
from nodetune.guard.deploy import gres, node_state
from nodetune.guard.deploy.nodes import GuardedNode
from nodetune.provision import decide, driver, results
from nodetune.provision.facts import HostRefusedError
from nodetune.remediation import plan as planning
from nodetune.verify import machine
from tests.support.provisioning import lock, running, site

MACHINE = json.loads((Path(__file__).parents[1] / "data/synthetic/hgx-h200-untuned.json").read_text())
NAMES = sorted(MACHINE["facts"].keys() | {name for name in gate._table() if "." in name and not name.endswith("*")})
FAMILIES = sorted({name.partition(".")[0] for name in NAMES})
DEEP = json.loads("[" * 300 + "]" * 300)
WRONG = (None, True, -1, 1 << 70, 1.5, "x", "x" * 70_000, [], [None], {}, {"x": None}, {"x": {}}, DEEP)


def replaced(data):
    """The value with one part of it replaced by each wrong type; of a list or an object's values, the first."""
    yield from WRONG
    if isinstance(data, dict):
        for name in list(data)[:30]:
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


def read(name, fact):
    return document.from_data({"facts": {name: fact}}).facts[name]


class Everything:
    """All that reads the facts of a host."""

    def __init__(self, folder):
        self.judge = auditor.Auditor(comparing(Selection()), "2026-01-01")
        self.site = site(folder)

    def reads(self, facts):
        result = self.judge.result(facts)
        self.judge._choice.collector.row(facts)
        planning.plan(HostResult(facts.host, "ok", facts=facts, findings=result.findings))
        machine.of(facts).data()
        GuardedNode(HostResult(facts.host, "ok", facts=facts)).policy  # noqa: B018
        gres.line(facts) if hasattr(gres, "line") else None
        node_state.notes(facts)

    def provisions(self, facts):
        for work in (
            lambda: decide.decide(facts, self.site, lock()),
            lambda: driver.takes_reboot(facts, "580.1"),
            lambda: driver.not_up(facts, "580.1"),
            lambda: driver.running_driver(facts),
            lambda: results.users(facts),
        ):
            try:
                work()
            except HostRefusedError:
                continue


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return Everything(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_wrong_value_of_a_fact_crashes_what_reads_it(everything, family):
    base = document.from_data(MACHINE)
    provisioned = running()
    tried = 0
    for name in (each for each in NAMES if each.partition(".")[0] == family):
        for data in wrong(name):
            fact = read(name, data)
            everything.reads(HostFacts("bad", {**base.facts, name: fact}, base.about))
            if name in decide.FACTS or family == "packages":
                everything.provisions(HostFacts("bad", {**provisioned.facts, name: fact}, provisioned.about))
            tried += 1
    assert tried >= len(WRONG)
