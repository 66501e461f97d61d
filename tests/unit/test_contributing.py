"""The code of the guides in CONTRIBUTING.md does what they say."""

import functools
import importlib.util
import io
import json
import os
import re
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner

from nodetune.api import remedies
from nodetune.api.model import HostFacts, HostResult
from nodetune.audit import evaluate, explain
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.checks import load
from nodetune.facts import catalogue, document
from nodetune.history import kinds
from nodetune.measurements.host import report
from nodetune.remediation.host_view import HostView
from nodetune.remote import payload
from nodetune.verify import catalogue as measurements
from tests.support.explicit import unsaid

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^\d\. (?:In )?`([\w./-]+)`[^`]*?(?:`[^`]+`[^`]*?)*\n\n +```(?:python|yaml|text)\n(.*?) +```",
    re.DOTALL | re.MULTILINE,
)
CODE = {path: textwrap.dedent(code) for path, code in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())}
sys.path.insert(0, str(ROOT / "playbooks" / "module_utils"))


def module(path, package, tmp_path):
    """The code of a guide as a module of that package."""
    file = tmp_path / Path(path).name
    file.write_text(CODE[path])
    spec = importlib.util.spec_from_file_location(f"{package}.{file.stem}", file)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_check_judges_its_cases_and_explains_itself(tmp_path):
    made = module("nodetune/checks/memory/panic_on_oom_set.py", "nodetune.checks.memory", tmp_path)
    known = load("swappiness-high")
    check = made.CHECK.__class__(
        **{**vars(made.CHECK), "id": "panic-on-oom-set", "area": "memory", "doc": made.__doc__}
    )
    assert type(check) is type(known)
    taught = tuple(explain.explain(check).sections)
    assert taught == tuple(head for head in explain.HEADINGS if head not in explain.OPTIONAL)
    for status, facts in yaml.safe_load(CODE["tests/data/cases/panic_on_oom_set.yml"]).items():
        wanted = facts.pop("finding", {})
        facts.setdefault("persisted.sysctl.vm.panic_on_oom", {"absent": "no file"})
        finding = evaluate.judge(check, document.from_data({"host": "case", "facts": facts}))
        assert (finding.status, {key: getattr(finding, key) for key in wanted}) == (status, wanted)


def test_the_fact_passes_the_test_of_its_guide(tmp_path, monkeypatch):
    made = module("nodetune/probe/entropy.py", "nodetune.probe", tmp_path)
    test = module("tests/unit/probe/test_entropy.py", "tests", tmp_path)
    monkeypatch.setattr(made.read, "ROOT", str(tmp_path))

    def tree(files):
        for path, content in files.items():
            place = tmp_path / path.lstrip("/")
            (place if content is None else place.parent).mkdir(parents=True, exist_ok=True)
            if content is not None:
                place.write_text(content)
        return tmp_path

    def collect(family, names):
        return {f"{family}.{name}": fact for name, fact in made.collect(names, lambda _: None)}

    test.test_the_bits_are_a_number_and_no_file_is_absent(tree, collect)


def test_the_row_of_the_fact_is_all_that_the_catalogue_needs(tmp_path, monkeypatch):
    row = CODE["nodetune/facts/catalogue.txt"]
    path = tmp_path / "catalogue.txt"
    path.write_text(catalogue.PATH.read_text() + "\n" + row)
    assert unsaid("entropy.available_bits", {"value": 256}) == ["entropy.available_bits"]
    with monkeypatch.context() as patched:
        patched.setattr(catalogue, "_texts", functools.cache(catalogue._texts.__wrapped__))
        patched.setattr(catalogue, "PATH", path)
        assert unsaid("entropy.available_bits", {"value": 256}) == []
        assert kinds.of("entropy.available_bits") == "passing"
    for known in (catalogue.rows, catalogue.wanted_of, kinds._of, kinds._kinds):
        known.cache_clear()


def test_the_remedy_is_built_applied_and_rolled_back(tmp_path):
    space = dict(vars(remedies))
    exec(CODE["nodetune/api/remedies.py"], space)
    builder = module("nodetune/remediation/builders/timezone.py", "nodetune.remediation.builders", tmp_path)
    fix = SimpleNamespace(target=space["timezone"]().target, value="Europe/Berlin")
    host = HostView(HostFacts("gpu1", {}, {}))
    host.checks = lambda _: ["a-check"]
    (change,) = builder.changes([fix], host)
    assert change["to"] == "/usr/share/zoneinfo/Europe/Berlin"
    resource = module("playbooks/module_utils/nodetune_host/resources/symlink.py", "nodetune_host.resources", tmp_path)
    change["path"] = str(tmp_path / "localtime")
    before = resource.read(change)
    resource.put(change, resource.wanted(change, before))
    assert os.readlink(change["path"]) == change["to"]
    resource.put(change, before)
    assert resource.read(change) is None


def test_the_measurement_is_in_the_catalogue_and_measures(tmp_path, monkeypatch):
    made = module("nodetune/measurements/syscall.py", "nodetune.measurements", tmp_path)
    monkeypatch.setattr(payload, "MEASUREMENTS", tmp_path)
    known = measurements.of("syscall")
    assert (known.scope, known.seconds, known.tolerance_of("getppid")["drift"]) == ("host", 10.0, 5)
    sent = []
    told = report.Report("syscall", SimpleNamespace(write=sent.append, flush=lambda: None))
    monkeypatch.setattr(told, "send", lambda kind, content: sent.append((kind, content)))
    made.measure({"repeats": 2}, told)
    (record,) = [content for kind, content in sent if kind == "record"]
    assert (record["metric"], record["better"], len(record["samples"])) == ("getppid", "lower", 2)
    assert all(0 < sample < 1e6 for sample in record["samples"])


def test_the_command_runs(tmp_path):
    made = module("nodetune/cli/commands/areas.py", "nodetune.cli.commands", tmp_path)
    done = CliRunner().invoke(made.command)
    assert done.exit_code == 0 and "memory" in done.output.splitlines()


def test_the_report_format_is_written(tmp_path):
    made = module("nodetune/report/tsv.py", "nodetune.report", tmp_path)
    facts = document.from_data(json.loads((ROOT / "tests/data/from-0.1/facts/gpu1.json").read_text()))
    result: HostResult = Auditor(Selection(select=("swappiness-high",))).result(facts)
    stream = io.StringIO()
    made.write([result], stream)
    assert stream.getvalue() == "gpu1\tswappiness-high\tfail\t60\n"
    assert "def _tsv(_about: About) -> Write:" in CODE["nodetune/report/__init__.py"]


@pytest.mark.parametrize("path", CODE)
def test_a_guide_names_a_place_that_exists(path):
    assert (ROOT / path).parent.is_dir()


def test_the_table_of_rooms_names_every_package():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## The rooms")[2].partition("\n## ")[0]
    named = {name for line in table.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    packages = {path.parent.name for path in (ROOT / "nodetune").glob("*/__init__.py")}
    assert packages
    assert packages <= named
