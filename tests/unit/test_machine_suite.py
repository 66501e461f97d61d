"""Which tests on virtual machines run, what proves a file of them, and a fix. No machine is started here."""

from dataclasses import replace

import pytest
import yaml

from nodetune import checks
from nodetune.config import overlay
from tests.machines import proofs, suite
from tests.machines.place import FleetError

NOW = {
    "machines": {"playbooks": "a1", "templates": "b2"},
    "measuring": {"nodetune/measurements": "e5"},
    "provisioning": {"nodetune/provision": "c3"},
    **{file.stem: {f"tests/machines/{file.name}": f"d4 {file.stem}"} for file in suite.FILES},
}
RECORD = {
    file.stem: {
        "time": "2026-01-01T00:00:00Z",
        "hashes": {part: NOW[part] for part in (*suite.rooms_of(file.stem), file.stem)},
    }
    for file in suite.FILES
}
BUT_LONG = tuple(file for file in suite.FILES if file not in suite.LONG)


def with_hash(part, line, value):
    return {**NOW, part: {**NOW[part], line: value}}


def test_nothing_changed_needs_only_the_short_story():
    choice = suite.choose(NOW, RECORD)
    assert choice.files == (suite.SHORT,)
    assert choice.reason == "only test_short_story: the rest is proven"


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (with_hash("machines", "templates", "other"), "Changed since all passed: templates: --all runs all"),
        (with_hash("machines", "new", "d4"), "Changed since all passed: new: --all runs all"),
        ({**NOW, "machines": {"playbooks": "a1"}}, "Changed since all passed: templates: --all runs all"),
        (with_hash("measuring", "nodetune/measurements", "other"), "passed: nodetune/measurements: --all runs all"),
        (with_hash("provisioning", "nodetune/provision", "other"), "passed: nodetune/provision: --all runs all"),
    ],
    ids=["a file changed", "a line was added", "a line was removed", "measurements", "provisioning"],
)
def test_a_changed_room_is_named_and_reruns_nothing(now, named):
    choice = suite.choose(now, RECORD)
    assert choice.files == (suite.SHORT,)
    assert choice.reason.endswith(named)


def test_what_a_fix_rests_on_reruns_the_file_that_proves_it():
    choice = suite.choose(with_hash("test_apply", "nodetune/checks/memory/x.py", "other"), RECORD)
    assert [file.stem for file in choice.files] == ["test_apply", "test_short_story"]
    assert "test_apply (changed since it passed: nodetune/checks/memory/x.py)" in choice.reason


def test_of_much_that_changed_only_some_is_named():
    now = {**NOW, "test_apply": {str(number): f"new {number}" for number in range(9)}}
    assert "test_apply (changed since it passed: 0, 1, 2, 3, 4 and 4 more)" in suite.choose(now, RECORD).reason


def test_a_file_that_has_not_passed_runs_with_the_short_story():
    record = {file: entry for file, entry in RECORD.items() if file != "test_apply"}
    choice = suite.choose(NOW, record)
    assert [file.stem for file in choice.files] == ["test_apply", "test_short_story"]
    assert "test_apply (has not passed yet)" in choice.reason


def test_a_long_story_that_changed_is_named_and_not_run():
    choice = suite.choose(with_hash("test_provision", "tests/machines/test_provision.py", "other"), RECORD)
    assert choice.files == (suite.SHORT,)
    assert "Left out: test_provision (changed since it passed: tests/machines/test_provision.py)" in choice.reason


@pytest.mark.parametrize("text", [None, "", "<<<<<<< HEAD", "[]"])
def test_without_a_readable_record_all_but_long_ones_run(tmp_path, text):
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)
    assert suite.choose(NOW, suite.read_record(path)).files == BUT_LONG


def test_everything_runs_when_asked_for_whatever_is_recorded():
    assert suite.choose(NOW, RECORD, everything=True).files == suite.FILES


def test_test_files_that_are_named_exist():
    assert {suite.SHORT, *suite.LONG, *suite.MEASURING} < set(suite.FILES)


# Hashes


def hashes(tmp_path, *lines):
    dependencies = tmp_path / "dependencies.yml"
    dependencies.write_text("machines:\n" + "".join(f"  - {line}\n" for line in lines))
    return suite.hashes(tmp_path, dependencies)["machines"]


@pytest.fixture
def tree(tmp_path):
    for name in ("one/a.py", "one/under/b.py", "two/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def change(path):
    path.write_text("other")


def make_executable(path):
    path.chmod(0o755)


def rename(path):
    path.rename(path.with_name("new.py"))


@pytest.mark.parametrize("how", [change, make_executable, rename])
def test_a_change_below_a_folder_changes_its_hash_only(tree, how):
    before = hashes(tree, "one", "tw*")
    how(tree / "one/under/b.py")
    after = hashes(tree, "one", "tw*")
    assert before["one"] != after["one"]
    assert before["tw*"] == after["tw*"]


def test_compiled_files_do_not_count(tree):
    before = hashes(tree, "one")
    (tree / "one/__pycache__").mkdir()
    (tree / "one/__pycache__/a.pyc").write_text("compiled")
    assert hashes(tree, "one") == before


def test_a_line_that_matches_nothing_is_refused_by_name(tree):
    with pytest.raises(FleetError, match=r"dependencies\.yml: moved/away matches no file"):
        hashes(tree, "one", "moved/away")


def test_the_list_of_dependencies_fits_this_tree():
    found = suite.hashes()
    assert set(found) == {"machines", "measuring", "provisioning", *(file.stem for file in suite.FILES)}
    assert "tests/machines" in found["machines"]


# The record


def report(*cases):
    lines = [
        f'<testcase classname="tests.machines.{file}" name="{name}" time="1.26">{inside}</testcase>'
        for file, name, inside in cases
    ]
    return f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>"


ONE, TWO = ("test_apply", "test_one", ""), ("test_apply", "test_two[1]", "")


def test_a_file_that_passed_whole_is_recorded_with_its_seconds():
    found = suite.proven(NOW, report(ONE, TWO), {"test_apply": 2}, 0)
    tests = {"test_one": 1.3, "test_two[1]": 1.3}
    needed = {part: NOW[part] for part in ("machines", "test_apply")}
    told = {"time": "1970-01-01T00:00:00Z", "hashes": needed, "seconds_per_test": tests}
    assert found == {"test_apply": told}
    assert suite.unproven("test_apply", NOW, found) == ""


@pytest.mark.parametrize("inside", ['<skipped message="no gcc"/>', "<failure/>", "<error/>"])
def test_a_test_that_did_not_pass_proves_nothing_of_its_file(inside):
    other = ("test_pull_machines", "test_it", "")
    bad = ("test_apply", "test_two[1]", inside)
    assert set(suite.proven(NOW, report(ONE, bad, other), {"test_apply": 2, "test_pull_machines": 1}, 0)) == {other[0]}


def test_a_cut_short_run_proves_nothing_of_files_it_left_out():
    assert suite.proven(NOW, report(ONE), {"test_apply": 2}, 0) == {}


def test_provisioning_is_recorded_with_all_that_it_needs():
    found = suite.proven(NOW, report(("test_provision", "test_it", "")), {"test_provision": 1}, 0)
    assert set(found["test_provision"]["hashes"]) == {"machines", "measuring", "provisioning", "test_provision"}


def test_the_record_and_test_selection_are_no_changes():
    assert suite.RECORD in suite.NO_PART_OF_TESTS
    assert not {suite.RECORD, suite.HERE / "suite.py"} & set(suite._files(suite.ROOT, "tests/machines"))


def test_a_changed_file_of_tests_runs_again_and_no_other_with_it():
    choice = suite.choose(with_hash("test_apply", "tests/machines/test_apply.py", "other"), RECORD)
    assert [file.stem for file in choice.files] == ["test_apply", "test_short_story"]
    assert "test_apply (changed since it passed: tests/machines/test_apply.py)" in choice.reason


def test_the_tests_of_each_file_are_counted():
    counts = suite._counts(suite.FILES)
    assert set(counts) == {file.stem for file in suite.FILES}
    assert min(counts.values()) > 0


@pytest.mark.parametrize("words", [["--some"], ["--all", "tests/machines/test_apply.py"]])
def test_some_of_the_tests_cannot_be_asked_for(words, capsys):
    assert suite.main(words) == 2
    assert "python -m tests.machines.suite [--all]" in capsys.readouterr().err


# The proof of a fix


@pytest.fixture
def profiles(tmp_path, monkeypatch):
    """The shipped profiles, in a folder of the test."""
    for path in overlay.FOLDER.glob("*.yml"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(overlay, "FOLDER", tmp_path)
    return tmp_path


def recorded(file="test_apply"):
    return {file: {"hashes": {file: proofs.of_file(file)}}}


def test_a_fix_is_proven_while_nothing_that_it_rests_on_changed():
    record = recorded()
    assert {
        each for each, file in proofs.proven_by().items() if file == "test_apply" and proofs.stale(each, record)
    } == set()
    assert proofs.stale("swappiness-high", {}) == list(proofs.rests_on("swappiness-high")), "it never passed"


def test_a_fix_rests_on_check_builder_templates_and_host_modules():
    assert set(proofs.rests_on("governor-not-performance")) >= {
        "nodetune/checks/cpu/governor_not_performance.py",
        "nodetune/remediation/builders/cpufreq.py",
        "nodetune/remediation/builders/_boot.py",
        "playbooks/module_utils/nodetune_host/resources/cpu.py",
        "playbooks/module_utils/nodetune_host/settings.py",
        "templates/cpu.service.j2",
        "the values of governor-not-performance",
    }
    other = proofs.rests_on("swappiness-high")
    assert "playbooks/module_utils/nodetune_host/resources/cpu.py" not in other
    assert not [part for part in other if "/onhost/" in part or "/cpufreq" in part]


def test_another_value_in_the_check_makes_its_proof_stale(monkeypatch):
    record = recorded()
    changed = replace(checks.load("swappiness-high"), set=60)
    monkeypatch.setattr(proofs.checks, "load", lambda check_id: changed)
    assert proofs.stale("swappiness-high", record) == ["the values of swappiness-high"]


def test_another_value_in_a_profile_makes_its_proof_stale(profiles):
    record = recorded()
    path = profiles / "vm.yml"
    content = yaml.safe_load(path.read_text())
    content["checks"]["swappiness-high"]["set"] = 60
    path.write_text(yaml.safe_dump(content))
    assert proofs.stale("swappiness-high", record) == ["the values of swappiness-high"]
    assert proofs.stale("max-map-count-low", record) == []


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('"""Another docstring."""\nimport sys\n\n\ndef f():\n    # why\n    return 60  # because\n', True),
        ("def f():\n    return 61\n", False),
        ("def f():\n    return '60'\n", False),
    ],
    ids=["docstring, import and comments", "another number", "a text"],
)
def test_only_what_code_does_counts(text, same, tmp_path):
    one, other = tmp_path / "one.py", tmp_path / "moved.py"
    one.write_text('"""A docstring."""\n\nimport os\n\n\ndef f():\n    return 60\n')
    other.write_text(text)
    assert (proofs._hash(one) == proofs._hash(other)) is same


def test_a_fix_without_its_host_modules_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(proofs, "HOST", proofs.HOST / "moved")
    with pytest.raises(FleetError, match=r"swappiness-high: no file of its host modules was found: were they moved"):
        proofs.rests_on("swappiness-high")


def test_every_builder_and_host_module_belongs_to_a_fix():
    """Of the host's modules, the ones for all changes are a room: only --all proves them."""
    known = {part for check in checks.load_all() if check.remedy.kind != "manual" for part in proofs.rests_on(check.id)}
    files = {str(path.relative_to(proofs.ROOT)) for path in proofs.BUILDERS.glob("*.py")}
    files |= {str(path.relative_to(proofs.ROOT)) for path in (proofs.HOST / "resources").glob("*.py")}
    lone = {path.rpartition("/")[2] for path in files - known}
    assert lone == {"__init__.py", "guarded.py", "program.py", "slurm.py"}
