"""Which tests on virtual machines run, and what counts as a full pass. No machine is started here."""

import pytest

from tests.machines import suite
from tests.machines.place import FleetError

NOW = {"machines": {"playbooks": "a1", "templates": "b2"}, "provisioning": {"nodetune/provision": "c3"}}
RECORD = {"time": "2026-01-01T00:00:00Z", "hashes": NOW}


def with_hash(part, line, value):
    return {**NOW, part: {**NOW[part], line: value}}


def test_nothing_changed_needs_only_the_short_story():
    choice = suite.choose(NOW, RECORD)
    assert choice.tests == (str(suite.SHORT),)
    assert choice.reason.endswith("changed since the full pass of 2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (with_hash("machines", "templates", "other"), "00Z: templates."),
        (with_hash("machines", "new", "d4"), "00Z: new."),
        ({**NOW, "machines": {"playbooks": "a1"}}, "00Z: templates."),
    ],
    ids=["a file changed", "a line was added", "a line was removed"],
)
def test_a_change_needs_all_tests_but_provisioning(now, named):
    choice = suite.choose(now, RECORD)
    assert choice.tests == (str(suite.HERE), f"--ignore={suite.PROVISIONING}")
    assert named in choice.reason


def test_a_change_of_provisioning_is_named_and_not_run():
    choice = suite.choose(with_hash("provisioning", "nodetune/provision", "other"), RECORD)
    assert choice.tests == (str(suite.SHORT),)
    assert "has not passed with nodetune/provision" in choice.reason


@pytest.mark.parametrize("text", [None, "", "<<<<<<< HEAD", "[]"])
def test_without_a_readable_record_all_but_provisioning_runs(tmp_path, text):
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)
    choice = suite.choose(NOW, suite.read_record(path))
    assert choice.tests == (str(suite.HERE), f"--ignore={suite.PROVISIONING}")
    assert "records no full pass" in choice.reason


def test_everything_runs_when_asked_for_whatever_is_recorded():
    assert suite.choose(NOW, RECORD, everything=True).tests == ()


def test_test_files_that_are_named_exist():
    assert suite.SHORT.is_file()
    assert suite.PROVISIONING.is_file()


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
    assert set(found) == {"machines", "provisioning"}
    assert "tests/machines" in found["machines"]


# The record of a full pass


def report(tests, inside=""):
    cases = [
        f'<testcase classname="tests.fleet.{file}" name="{name}" time="1.26">{inside}</testcase>'
        for file, name in tests
    ]
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


EVERY_FILE = [(path.stem, "test_it") for path in suite.HERE.glob("test_*.py")]


def test_a_full_pass_names_every_test_and_its_seconds():
    record = suite.full_pass(NOW, report([*EVERY_FILE, ("test_apply", "test_it[1]@test_apply")]), 0, 90)
    assert record["time"] == "1970-01-01T00:00:00Z"
    assert record["minutes"] == 1.5
    assert record["hashes"] == NOW
    assert record["seconds_per_test"]["test_apply"] == {"test_it": 1.3, "test_it[1]": 1.3}


def test_a_skipped_test_makes_no_full_pass():
    with pytest.raises(FleetError, match="test_it did not pass: no gcc"):
        suite.full_pass(NOW, report(EVERY_FILE, '<skipped message="no gcc"/>'), 0, 90)


def test_a_file_without_a_test_makes_no_full_pass():
    with pytest.raises(FleetError, match="no test ran of test_provision:"):
        suite.full_pass(NOW, report([each for each in EVERY_FILE if each[0] != "test_provision"]), 0, 90)


@pytest.mark.parametrize("words", [["--some"], ["--all", "tests/machines/test_apply.py"]])
def test_a_full_pass_of_some_tests_cannot_be_asked_for(words, capsys):
    assert suite.main(words) == 2
    assert "python -m tests.machines.suite [--all]" in capsys.readouterr().err
