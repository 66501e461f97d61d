"""What every part of nodetune must keep: one test each, so that a new file needs no new test."""

import ast
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import nodetune
from nodetune import checks
from nodetune.api import derived, predicates, remedies
from nodetune.api.model import DISRUPTIONS, SEVERITIES, Check, Remedy
from nodetune.audit import evaluate, explain
from nodetune.config import site_checks
from nodetune.guard.deploy import archive
from nodetune.remediation import plan

PACKAGE = Path(nodetune.__file__).parent
CASES = Path(__file__).parents[1] / "data" / "cases"
EVERY = sorted(checks.catalogue())
LAYERS = [
    {"__main__", "pytest_plugin"},
    {"cli"},
    {"report"},
    {"provision"},
    {"tune"},
    {"guard"},
    {"remediation"},
    {"jobs", "verify"},
    {"audit"},
    {"config"},
    {"checks"},
    {"remote"},
    {"history"},
    {"facts"},
    {"hosts"},
    {"data"},
    {"api"},
    {"statistics"},
    {"foundation"},
]
PAYLOADS = {"onhost": (), "probe": ("nodetune.onhost",), "measurements": ("nodetune.onhost", "nodetune.measurements")}
"""What is sent to hosts, and what of nodetune it imports by a whole name. Besides, files import others of their folder."""

HEAVY = (
    "click",
    "yaml",
    "jinja2",
    "paramiko",
    "ansible",
    "ansible_runner",
    "rich",
    "importlib.metadata",
    "ClusterShell",
)


@pytest.fixture(scope="module")
def every():
    return {check.id: check for check in checks.load_all()}


@pytest.mark.parametrize("name", EVERY)
def test_a_check_has_cases_that_pass_and_that_fail(name):
    path = CASES / f"{name.replace('-', '_')}.yml"
    assert path.exists(), f"write {path.name}: the facts of a host that passes and of one that fails"
    content = yaml.safe_load(path.read_text())
    assert content.get("pass"), "no passing case"
    assert content.get("fail"), "no failing case: a check that cannot fail is none"
    assert set(content) <= {"exception", "given", "pass", "fail", "skip", "unknown"}


def test_every_case_file_belongs_to_a_check():
    assert {path.stem.replace("_", "-") for path in CASES.glob("*.yml")} == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_a_check_teaches_under_the_fixed_headings(name):
    check = checks.load(name)
    told = explain.explain(check)
    assert check.doc.partition("\n")[0].endswith("."), "the first line is a sentence"
    written = [head for head in explain.HEADINGS if head in told.sections or head not in explain.OPTIONAL]
    assert list(told.sections) == written
    assert all(told.sections.values())
    assert re.search(r"https://\S+", told.sections["Sources"]), "a source that can be opened"


@pytest.mark.parametrize("name", EVERY)
def test_a_check_is_made_of_known_parts(name):
    check = checks.load(name)
    assert isinstance(check, Check)
    assert isinstance(check.remedy, Remedy)
    assert check.severity in SEVERITIES
    assert check.remedy.disruption in DISRUPTIONS
    assert check.absent in ("skip", "pass", "fail")
    assert check.stability in ("preview", "stable")
    assert (check.fact is None) != (check.observe is None), "one of fact and observe"
    assert check.fact or check.needs, "an observation declares what it reads"
    assert check.remedy.kind != "manual" or (check.remedy.steps and check.set is None)
    known = check.set is not None or check.accept is None or check.remedy.steps
    assert check.remedy.kind == "manual" or known, (
        "a fix says what it sets, or what to do where the site file does not set it"
    )


@pytest.mark.parametrize("name", EVERY)
def test_what_a_check_accepts_is_data(name):
    predicate = predicates.as_predicate(checks.load(name).accept)
    assert predicates.from_data(json.loads(json.dumps(predicates.to_data(predicate)))) == predicate


def test_what_a_check_accepts_is_written_as_documented():
    data = {name: predicates.to_data(predicates.as_predicate(checks.load(name).accept)) for name in EVERY}
    assert data["aer-correctable-errors-frequent"] == {"at_most": 60}
    assert data["aspm-saves-power"] == {"one_of": ["default", "performance"]}
    assert data["bmc-reports-fault"] == {"empty": "no fault"}
    assert data["gpu-applications-clock-low"] == {"at_least": {"fact": "gpu.default_applications_clock.sm"}}
    assert data["stack-unlimited"] == {"not": {"equals": "unlimited"}}


def sets_a_plain_value(name):
    check = checks.load(name)
    return check.set is not None and check.fact and not predicates.refs(check.accept) and not predicates.refs(check.set)


@pytest.mark.parametrize("name", [name for name in EVERY if sets_a_plain_value(name)])
def test_a_fix_sets_what_its_check_accepts(name):
    check = checks.load(name)
    assert predicates.as_predicate(check.accept).test(check.set)


def test_every_fact_family_that_checks_need_has_a_collector(every):
    families = {name.partition(".")[0] for name in evaluate.required_facts(every.values())}
    assert families <= {path.stem for path in (PACKAGE / "probe").glob("*.py")}


def test_derived_facts_are_declared_down_to_collected_ones(every):
    declared = {name for check in every.values() for name in evaluate.declared(check)}
    assert len(declared) > 200
    assert [name for name in declared if any(raw.startswith("derived.") for raw in derived.raw_needs(name))] == []


def kinds_of_fix():
    return {path.stem for path in (PACKAGE / "remediation" / "builders").glob("[a-z]*.py")}


def test_every_kind_of_fix_can_be_built(every):
    made_by_sites = [site_checks._fact_and_remedy(kind, "x")[1] for kind in site_checks.KINDS]
    used = {check.remedy.kind for check in every.values()} | {remedy.kind for remedy in made_by_sites}
    assert "sysctl" in used
    assert used - {"manual"} <= kinds_of_fix(), "write nodetune/remediation/builders/KIND.py"


def test_every_builder_is_one_of_a_kind_that_a_remedy_makes():
    made = {name for name, each in vars(remedies).items() if getattr(each, "__module__", "") == remedies.__name__}
    assert kinds_of_fix() == made - {"manual", "repair"}


def test_every_fact_that_a_builder_needs_has_a_collector():
    families = {name.partition(".")[0] for name in plan.facts_for(kinds_of_fix())}
    assert families <= {path.stem for path in (PACKAGE / "probe").glob("*.py")}


def test_building_changes_imports_nothing_heavy_early():
    code = f"""
import sys
from nodetune.remediation import host_changes
host_changes.needs({kinds_of_fix()!r})
found = sorted(set({HEAVY!r}) & set(sys.modules))
assert not found, found
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_importing_all_checks_runs_nothing():
    code = """
import sys
bad = ("subprocess.Popen", "os.system", "socket.connect", "os.exec", "os.posix_spawn")
def hook(event, args):
    if event in bad:
        raise RuntimeError(event)
sys.addaudithook(hook)
from nodetune import checks
assert len(checks.load_all()) == len(checks.catalogue())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_checks_import_nothing_heavy():
    code = f"""
import sys
from nodetune import checks
checks.load_all()
found = sorted(set({HEAVY!r}) & set(sys.modules))
assert not found, found
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def layer_of(module):
    for number, layer in enumerate(LAYERS):
        if module in layer:
            return number
    return None


def test_every_module_has_a_place_in_the_layers():
    homeless = [
        path.stem
        for path in PACKAGE.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists())
        and path.stem not in ("__init__", "__pycache__", *PAYLOADS)
        and layer_of(path.stem) is None
    ]
    assert not homeless, f"give {homeless} a layer in this test"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_in_one_direction(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts[0] in ("__init__", *PAYLOADS):
        return
    mine = layer_of(parts[0])
    assert mine is not None
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "nodetune":
            below = node.module.split(".")[1:2] or [name.name for name in node.names]
            for module in below:
                if module not in ("__version__", *PAYLOADS, parts[0]):
                    theirs = layer_of(module)
                    assert theirs is not None and theirs >= mine, f"{'/'.join(parts)} must not import {module}"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payloads_are_python_36_with_standard_library_only(payload):
    paths = list((PACKAGE / payload).rglob("*.py"))
    assert len(paths) > 5
    for path in paths:
        _standard_library_only(path, PAYLOADS[payload])


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_explains_a_folder_of_a_payload_has_no_code(payload):
    for path in (PACKAGE / payload).rglob("__init__.py"):
        (only,) = ast.parse(path.read_text()).body
        assert isinstance(only.value.value, str), f"{path} is not sent: only what explains the folder stands there"


def _standard_library_only(path, ours):
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots = {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots = set() if node.module.startswith(ours) else {node.module.split(".")[0]}
        else:
            continue
        assert roots <= set(sys.stdlib_module_names) | {"pynvml"}, path


@pytest.mark.parametrize("name", EVERY)
def test_a_check_file_stays_small(name):
    lines = Path(import_module(checks.catalogue()[name]).__file__).read_text().splitlines()
    assert len(lines) <= 110, "a check is one small file that anyone can read"


def test_bundled_folders_are_found():
    from nodetune.foundation import paths

    for name in ("playbooks", "templates", "inventories"):
        assert paths.shared(name).is_dir()


NOT_FOR_OTHERS = {"run", "latest", "notified"}
"""Files of nodetune's own that only nodetune reads."""


def test_every_public_document_has_a_schema():
    sources = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    made = set(re.findall(r'"nodetune\.([a-z-]+)/\d+"', sources)) - NOT_FOR_OTHERS
    assert {"audit", "facts", "plan"} <= made
    assert made <= {path.stem for path in (PACKAGE / "data" / "schemas").glob("*.json")}


def test_the_guards_program_holds_every_module_it_imports():
    files = archive.files()
    known = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files}
    imported = {
        name: set(_imported_of_ours(ast.parse(source.read_text())))
        for name, source in files.items()
        if name.startswith("nodetune/") and name.endswith(".py")
    }
    assert "nodetune.guard.node.policy" in set().union(*imported.values())
    missing = {name: modules - known for name, modules in imported.items() if modules - known}
    assert not missing, "see MODULES and FOLDERS of nodetune/guard/deploy/archive.py"


def _imported_of_ours(tree):
    """Modules of nodetune that are imported, as far as their names tell modules from what is in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "nodetune":
            inside = [f"{node.module}.{each.name}" for each in node.names]
            modules = [each for each in inside if (PACKAGE.parent / f"{each.replace('.', '/')}.py").exists()]
            yield from modules or [node.module]


STAGES = ("cli", "provision", "guard", "verify", "tune", "remediation", "audit")


def bags(source):
    """Where options travel as a dictionary below the function that click calls: a keyword of any kind, or what takes one apart."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)} & {"options", "given"}
            yield from (f"{node.name}({name})" for name in names)
            if node.args.kwarg:
                yield f"{node.name}(**{node.args.kwarg.arg})"
    yield from re.findall(r'\.pop\("\w+"', source)


@pytest.mark.parametrize("room", STAGES)
def test_no_bag_of_options_travels_below_a_command(room):
    found = {str(path.relative_to(PACKAGE)): list(bags(path.read_text())) for path in (PACKAGE / room).rglob("*.py")}
    assert len(found) > 5
    assert not {path: each for path, each in found.items() if each}, "make it a field of the stage's request"


def test_a_bag_of_options_is_found_in_every_form():
    source = 'def a(options): ...\ndef b(*, given): ...\nasync def c(**more): ...\nd.pop("yes")\nd.pop(name)\n'
    assert list(bags(source)) == ["a(options)", "b(given)", "c(**more)", '.pop("yes"']
