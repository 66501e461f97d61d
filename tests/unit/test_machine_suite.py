"""Which tests on virtual machines run, and what proves a file of them. No machine is started here."""

import pytest

from tests.machines import suite
from tests.machines.place import FleetError

NOW = {
    "machines": {"playbooks": "a1", "templates": "b2"},
    "measuring": {"nodetune/measurements": "e5"},
    "provisioning": {"nodetune/provision": "c3"},
    **{file.stem: {f"tests/machines/{file.name}": "d4"} for file in suite.FILES},
}
RECORD = {
    file.stem: {"time": "2026-01-01T00:00:00Z", "hashes": {part: NOW[part] for part in suite.parts_of(file.stem)}}
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
        (with_hash("machines", "templates", "other"), "test_apply (changed since it passed: templates);"),
        (with_hash("machines", "new", "d4"), "test_apply (changed since it passed: new);"),
        ({**NOW, "machines": {"playbooks": "a1"}}, "test_apply (changed since it passed: templates);"),
    ],
    ids=["a file changed", "a line was added", "a line was removed"],
)
def test_a_change_needs_all_tests_but_long_ones(now, named):
    choice = suite.choose(now, RECORD)
    assert choice.files == BUT_LONG
    assert named in choice.reason


def test_a_file_that_has_not_passed_runs_with_the_short_story():
    record = {file: entry for file, entry in RECORD.items() if file != "test_apply"}
    choice = suite.choose(NOW, record)
    assert [file.stem for file in choice.files] == ["test_apply", "test_short_story"]
    assert "test_apply (has not passed yet)" in choice.reason


def test_a_change_of_provisioning_is_named_and_not_run():
    choice = suite.choose(with_hash("provisioning", "nodetune/provision", "other"), RECORD)
    assert choice.files == (suite.SHORT,)
    assert "Left out: test_provision (changed since it passed: nodetune/provision)" in choice.reason


def test_a_change_of_measurements_runs_only_the_tests_that_measure():
    choice = suite.choose(with_hash("measuring", "nodetune/measurements", "other"), RECORD)
    assert {file.stem for file in choice.files} == {"test_short_story", "test_tune_settings", "test_verify_machines"}
    assert "Left out: test_provision (changed since it passed: nodetune/measurements)" in choice.reason


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
