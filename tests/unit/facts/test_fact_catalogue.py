"""The one register of facts: each leaf has a row of its own with its kind, or the kind is that of its fact."""

import contextlib
import json
import re
from pathlib import Path

import pytest
import yaml

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.facts import catalogue
from nodetune.foundation import paths
from nodetune.history import kinds
from nodetune.report.support import vendor_facts
from tests.support.explicit import unsaid

DATA = Path(__file__).parents[2] / "data"
FOLDERS = (DATA / "corpus", DATA / "synthetic", DATA / "from-0.1/facts", paths.bundled("facts/recorded"))
SAVED = [path for folder in FOLDERS for path in sorted(folder.glob("*.json"))]
CASES = sorted((DATA / "cases").glob("*.yml"))
KINDS = {"passing", "event", "errors", "counter", "gauge", "heat", "identity", "setting"}
ROWS = [(name, row) for name in catalogue.names() for row in catalogue.rows(name)]


def is_of_members(row):
    return "members" in row.shape


def test_every_row_has_a_kind_unless_its_leaves_have_rows_of_their_own():
    assert len(ROWS) > 600
    assert [(name, row.path) for name, row in ROWS if not row.kind and not is_of_members(row)] == []
    assert {row.kind for _, row in ROWS} == KINDS | {""}


def test_no_name_of_an_object_is_without_a_row():
    """An object in a list is no leaf; that of a named shape has the kind of its fact, which is said."""
    inline = [(name, row.path) for name, row in ROWS if re.search(r"\{(?!\*)", re.sub(r"[\[(].*[\])]", "", row.shape))]
    assert inline == []


def test_every_counter_says_what_makes_it_start_again_and_nothing_else_does():
    resets = {(row.kind in kinds.COUNTERS, row.cell(catalogue.RESET)) for _, row in ROWS}
    assert resets == {(True, "boot"), (True, "lifetime"), (False, "")}


def test_only_what_is_judged_has_a_limit():
    assert {name: row.limit for name, row in ROWS if row.limit} == {"gpu.nvlink_errors": 500, "gpu.temperature": 12}
    assert all(row.kind in kinds.JUDGED for _, row in ROWS if row.limit)


def test_every_fact_says_since_when_it_is_there_and_whether_support_gets_it():
    facts = [row for _, row in ROWS if not row.path]
    assert {row.cell(catalogue.SUPPORT) for row in facts} == {"", "yes", "ask"}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", row.cell(catalogue.SINCE)) for row in facts)
    below = {(row.cell(catalogue.SUPPORT), row.cell(catalogue.SINCE)) for _, row in ROWS if row.path}
    assert below == {("", "")}, "a fact is shown whole, or not at all"


def test_a_fact_stands_once_and_among_those_of_its_family():
    lines = [line for line in catalogue.PATH.read_text().splitlines() if re.match(r"\w+\.", line)]
    assert len(lines) == len(catalogue.names())
    families = [line.partition(".")[0] for line in lines]
    assert families == sorted(families)


SAMPLED = [(name, row) for name, row in ROWS if row.cell(catalogue.SAMPLE)]
PRIVATE = re.compile("serial|uuid|guid|hostname|mac_address|boot_id|gids")


@pytest.mark.parametrize(("name", "row"), SAMPLED, ids=lambda each: getattr(each, "path", each))
def test_a_sample_is_a_value_of_its_shape(name, row):
    """It is JSON, or the bare text; of a map, the value of one name."""
    sample, shape = row.cell(catalogue.SAMPLE), row.shape.removeprefix("each ")
    given = [sample]
    with contextlib.suppress(ValueError):
        given.append(json.loads(sample))
    for _ in range(shape.count("{*")):
        given = [{"name": each} for each in given]
    shape = "{value: setting}" if shape == "placed" else shape
    given = [{"value": each} for each in given] if shape == "{value: setting}" else given
    assert "" in [catalogue.Notation(shape).read().fault(each) for each in given]


def test_most_leaves_have_a_sample_and_none_says_which_part_or_host_it_is_from():
    assert len(SAMPLED) > 450
    assert [name for name, row in SAMPLED if PRIVATE.search(name + row.path)] == []


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_every_leaf_that_was_recorded_has_a_kind(path):
    facts = json.loads(path.read_text())["facts"]
    assert [leaf for name, fact in facts.items() for leaf in unsaid(name, fact)] == []


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_leaf_of_the_checks_cases_has_a_kind(path):
    for status, groups in yaml.safe_load(path.read_text()).items():
        for case in groups if isinstance(groups, list) else [groups]:
            if status not in ("unknown", "exception", "given"):
                facts = {name: fact for name, fact in case.items() if name not in ("finding", "site")}
                assert [leaf for name, fact in facts.items() for leaf in unsaid(name, fact)] == []


def test_every_fact_that_a_check_needs_is_in_the_catalogue():
    needed = evaluate.required_facts(checks.load_all())
    assert [name for name in needed if not catalogue.listed(name) and not name.startswith("packages.like.")] == []


def test_a_counter_that_nobody_listed_is_found():
    assert unsaid("bmc.event_log", {"value": {"entries": 1, "lost": 2}}) == ["bmc.event_log /lost"]
    assert unsaid("gpu.new_counter", {"each": {"GPU0": {"value": 1}}}) == ["gpu.new_counter"]
    assert unsaid("modules.options.a.b", {"value": {"value": 1, "file": "x", "times": 2}}) == [
        "modules.options.a.b /times"
    ]


def test_support_asks_for_serial_numbers_and_gets_facts_of_hardware_only():
    names = (
        "gpu.serial",
        "gpu.clock_info.sm",
        "xid.events",
        "host.dmi.bios_version",
        "nccl.settings",
        "gpu.access",
        "gpu.made_up",
    )
    assert [name for name in names if vendor_facts.is_shown(name)] == list(names[:4])
    assert catalogue.asked_for() == {
        *("host.dmi.product_serial", "host.dmi.board_serial", "host.dmi.chassis_serial"),
        *("block.serial", "memory.serial", "rdma.guid"),
    }
