"""The pytest plugin, in runs of pytest of their own, over saved facts, this machine and real SSH."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nodetune.foundation import paths

HERE = Path(__file__).parents[2]
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "integration")]
from farm import SSHD, Farm  # noqa: E402

pytestmark = pytest.mark.slow  # each runs pytest in a process of its own

pytest_plugins = ["pytester"]
ENTRY = '[project.entry-points.pytest11]\nnodetune = "nodetune.pytest_plugin"\n'
MACHINE = "--nodetune-facts=h200-x4"
UNTUNED = HERE / "data" / "synthetic" / "hgx-h200-untuned.json"
MEDIUM = ["clock-unsynchronized", "gpu-driver-vulnerable"]
"""What the bundled machine fails at, of severity medium; it fails nothing that is worse."""


@pytest.fixture
def installed(tmp_path_factory, monkeypatch):
    """The entry point, also where this checkout was installed before there was one."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "nodetune_entry-0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: nodetune-entry\nVersion: 0\n")
    info.joinpath("entry_points.txt").write_text(ENTRY.replace("project.entry-points.", "").replace('"', ""))
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
    monkeypatch.setenv(
        "PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )  # testinfra runs ansible-inventory
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return folder


@pytest.fixture
def run(pytester, installed):
    """Runs pytest with these arguments in an empty folder."""
    return lambda *arguments: pytester.runpytest_subprocess("-p", "no:cacheprovider", *map(str, arguments))


def outcomes(result):
    return {name: count for name, count in result.parseoutcomes().items() if name not in ("warnings", "warning")}


def audit(*arguments):
    """What the command tells of the same: its JSON."""
    command = [sys.executable, "-m", "nodetune", "audit", "--format", "json", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout)


def counted(results):
    found = {}
    for host in results["hosts"]:
        for finding in host["findings"]:
            found[finding["status"]] = found.get(finding["status"], 0) + 1
    return found


def test_the_entry_point_is_declared():
    assert ENTRY in (ROOT / "pyproject.toml").read_text()


def test_without_the_option_only_the_list_of_options_is_imported(run, pytester):
    pytester.makepyfile(
        """
        import sys
        def test_imports():
            assert sorted(name for name in sys.modules if name.split(".")[0] == "nodetune") == [
                "nodetune", "nodetune.pytest_plugin", "nodetune.pytest_plugin.options"]
            assert not {"yaml", "click", "paramiko", "ansible"} & set(sys.modules)
        """
    )
    run("-p", "no:testinfra").assert_outcomes(passed=1)


def test_nodetune_does_not_import_pytest():
    code = "import sys; from nodetune.cli.commands import audit; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_check_is_an_item_and_ends_as_the_audit_says(run):
    told = counted(audit("--facts", "h200-x4"))
    result = run("--nodetune", MACHINE)
    lesser = told["fail"] - len(MEDIUM)
    assert lesser > 0
    found = outcomes(result)
    expected = {"failed": len(MEDIUM), "passed": told["pass"], "xfailed": lesser}
    assert {name: found[name] for name in expected} == expected
    assert found["skipped"] + found.get("errors", 0) == told["skip"] + told.get("unknown", 0)
    assert result.ret == 1


def test_a_failure_has_observed_wanted_reason_and_next_step(run):
    text = run("--nodetune", MACHINE, "--nodetune-select=clock-unsynchronized").stdout.str()
    assert "medium: The system clock is not synchronized" in text
    assert "  observed  not synchronized" in text
    assert "  wanted    synchronized" in text
    assert re.search(r"^  why       Logs and traces of several nodes", text, re.MULTILINE)
    assert "  next      nodetune explain clock-unsynchronized" in text
    assert "pytest_plugin" not in text.replace("plugins:", "")
    assert "Traceback" not in text


def test_what_can_be_set_names_the_plan_for_these_hosts(run):
    text = run(
        "--nodetune", MACHINE, "--nodetune-select=dirty-limit-high", "--nodetune-fail-on=info"
    ).stdout.str()  # fmt: skip
    assert "  next      nodetune plan --facts h200-x4 -s dirty-limit-high" in text


@pytest.mark.parametrize(
    "select", [["--nodetune-select=memory,limits"], ["--nodetune-select=memory", "--nodetune-select=limits"]]
)
def test_several_areas_can_be_named_in_one_option_or_in_several(run, select):
    told = counted(audit("--facts", "h200-x4", "-s", "memory", "-s", "limits"))
    assert sum(outcomes(run("--nodetune", MACHINE, *select)).values()) == sum(told.values())


@pytest.mark.parametrize(("fail_on", "failed"), [("high", 0), ("medium", 2), ("low", 2), ("never", 0)])
def test_findings_below_the_threshold_are_expected_failures(run, fail_on, failed):
    result = run("--nodetune", MACHINE, f"--nodetune-fail-on={fail_on}")
    found = outcomes(result)
    assert found.get("failed", 0) == failed
    assert found.get("failed", 0) + found["xfailed"] == 6
    assert result.ret == (1 if failed or found.get("errors") else 0)


def test_an_expected_failure_and_a_skip_say_why(run):
    text = run("--nodetune", MACHINE, "-rxs").stdout.str()
    assert (
        "XFAIL nodetune[h200-x4]::slow-start-after-idle-on - info, below --nodetune-fail-on medium: observed 1, wanted 0"
        in text
    )
    assert re.search(r"SKIPPED \[\d+\] nodetune\[h200-x4\]: no RDMA device", text)


def test_a_waived_finding_is_an_expected_failure_with_its_reason(run, pytester):
    waiver = "{id: clock-unsynchronized, hosts: h200-x4, reason: no network, owner: jo, until: 2999-01-01}"
    site = pytester.path / "site.yml"
    site.write_text(f"waivers: [{waiver}]\n")
    given = ["--nodetune", MACHINE, f"--nodetune-site={site}", "--nodetune-select=clock-*", "-rx"]
    result = run(*given)
    assert (outcomes(result)["xfailed"], result.ret) == (1, 0)
    result.stdout.fnmatch_lines(["XFAIL nodetune?h200-x4?::clock-unsynchronized - waived: no network (jo, until 2999*"])
    assert outcomes(run(*given, "--runxfail"))["failed"] == 1, "--runxfail is pytest's way to see them as they are"


def planted(folder, **facts):
    """The bundled machine's facts in a file, some replaced."""
    data = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
    assert set(facts) <= set(data["facts"])
    data["facts"].update(facts)
    (folder / "node.json").write_text(json.dumps({**data, "host": "node"}))
    return folder / "node.json"


@pytest.mark.parametrize(("fail_on", "outcome", "code"), [("medium", "errors", 1), ("critical", "skipped", 0)])
def test_an_unknown_verdict_is_an_error_where_it_counts(run, pytester, fail_on, outcome, code):
    """As exit code 3 of an audit: incomplete."""
    unread = {"unread": "permission denied: add -b"}
    file = planted(pytester.path, **{"services.time_sync": unread})
    given = ["--nodetune", f"--nodetune-facts={file}", "--nodetune-select=clock-unsynchronized"]
    result = run(*given, f"--nodetune-fail-on={fail_on}", "-ra")
    assert outcomes(result) == {outcome: 1}
    assert result.ret == code
    assert "permission denied: add -b" in result.stdout.str()


def test_markers_select_by_severity_and_area(run):
    ids = run("--nodetune", f"--nodetune-facts={UNTUNED}", "-m", "critical and gpu", "--co", "-q").stdout.str()
    found = re.findall(r"^nodetune\[hgx-h200-untuned\]::(\S+)$", ids, re.MULTILINE)
    catalogue = subprocess.run([sys.executable, "-m", "nodetune", "checks", "--format", "json"], capture_output=True)
    rows = json.loads(catalogue.stdout)["checks"]
    assert sorted(found) == sorted(
        row["id"] for row in rows if (row["severity"], row["area"]) == ("critical", "gpu")
    )  # fmt: skip
    listed = run("--nodetune", "--markers").stdout.str()
    assert "@pytest.mark.critical:" in listed
    assert "@pytest.mark.rdma:" in listed


def test_markers_are_registered_for_strict_runs(run):
    result = run("--nodetune", MACHINE, "--strict-markers", "-W", "error")
    assert outcomes(result)["failed"] == len(MEDIUM)


def test_node_ids_can_be_given_as_pytest_prints_them(run, pytester):
    pytester.makepyfile("def test_of_the_user(): pass")
    one = "nodetune[h200-x4]::clock-unsynchronized"
    assert outcomes(run("--nodetune", MACHINE, one)) == {"failed": 1}
    assert outcomes(run("--nodetune", MACHINE, one, "-n2")) == {"failed": 1}
    assert outcomes(run("--nodetune", MACHINE, "nodetune[h200-x4]"))["failed"] == len(MEDIUM)
    unknown = run("--nodetune", MACHINE, "nodetune[h200-x4]::no-such-check")
    assert unknown.ret == pytest.ExitCode.USAGE_ERROR
    unknown.stderr.fnmatch_lines(["ERROR: not found: nodetune?h200-x4?::no-such-check*"])


def test_the_last_failed_are_run_again(pytester, installed):
    first = pytester.runpytest_subprocess("--nodetune", MACHINE).parseoutcomes()
    again = pytester.runpytest_subprocess("--nodetune", MACHINE, "--lf").parseoutcomes()
    assert (again["failed"], again.get("errors")) == (2, first.get("errors"))
    assert "passed" not in again


def test_it_runs_next_to_testinfra_and_the_user_s_own_tests(run, pytester):
    pytester.makepyfile(
        """
        def test_root(host):
            assert host.user("root").uid == 0
        """
    )
    result = run("--nodetune", "--hosts=local://", "-v")
    result.stdout.fnmatch_lines(["*::test_root?local* PASSED*"])
    result.stdout.re_match_lines([r"nodetune\[localhost\]::thp-unsuitable (PASSED|FAILED|SKIPPED|ERROR|XFAIL).*"])


@pytest.mark.parametrize("distribution", ["load", "loadfile", "each"])
def test_xdist_workers_have_the_same_items_and_one_audit(run, pytester, distribution):
    """The inventory is a program that writes down when it is asked."""
    listed = {"all": {"hosts": ["node"]}, "_meta": {"hostvars": {"node": {"ansible_connection": "local"}}}}
    inventory = pytester.path / "asked.sh"
    inventory.write_text(f"#!/bin/sh\necho >>{pytester.path}/asked\ncat <<'E'\n{json.dumps(listed)}\nE\n")
    inventory.chmod(0o755)
    given = ["--nodetune", f"--nodetune-inventory={inventory}", "--nodetune-select=memory"]
    alone = outcomes(run(*given))
    (pytester.path / "asked").unlink()
    times = 2 if distribution == "each" else 1
    spread = outcomes(run(*given, "-n2", f"--dist={distribution}"))
    assert spread == {name: count * times for name, count in alone.items()}
    assert (pytester.path / "asked").read_text() == "\n"


@pytest.mark.parametrize("more", [[], ["-n2"]])
@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_in_a_junit_file_a_host_is_a_class_and_a_check_a_case(run, pytester, more, family):
    run("--nodetune", MACHINE, "--junitxml=junit.xml", "-o", f"junit_family={family}", *more)
    cases = ET.parse(pytester.path / "junit.xml").getroot().findall(".//testcase")
    assert {case.get("classname") for case in cases} == {"nodetune.h200-x4"}
    assert sorted(case.get("name") for case in cases if case.find("failure") is not None) == MEDIUM
    (clock,) = (case for case in cases if case.get("name") == "clock-unsynchronized")
    assert "The system clock is not synchronized" in clock.find("failure").get("message")


def test_facts_of_several_hosts_are_compared_as_by_audit(run):
    folder = HERE / "data" / "synthetic"
    told = counted(audit("--facts", folder, "-s", "fleet"))
    result = run("--nodetune", f"--nodetune-facts={folder}", "--nodetune-select=fleet", "--nodetune-fail-on=info")
    assert outcomes(result) == {
        {"fail": "failed", "pass": "passed", "skip": "skipped", "unknown": "errors"}[status]: count
        for status, count in told.items()
    }


def test_two_fact_files_of_one_host_are_told_apart(run, pytester):
    for day in ("monday", "tuesday"):
        shutil.copy(paths.bundled("facts/recorded") / "h200-x4.json", pytester.path / f"{day}.json")
    ids = run(
        "--nodetune", f"--nodetune-facts={pytester.path}", "--nodetune-select=thp-unsuitable", "--co", "-q", "-n0"
    ).stdout.str()  # fmt: skip
    assert re.findall(r"^nodetune.*", ids, re.MULTILINE)[:2] == [
        "nodetune[h200-x4]::thp-unsuitable", "nodetune[h200-x4#2]::thp-unsuitable"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "more", [[], ["-n2"], ["-m", "critical"], ["-k", "thp"], ["nodetune[127.0.0.1]::thp-unsuitable"]]
)
def test_an_unreached_host_is_one_error_whatever_is_selected(run, more):
    result = run("--nodetune", "--nodetune-inventory=127.0.0.1:1", *more)
    assert outcomes(result)["errors"] == 1
    assert result.ret == 1
    result.stdout.fnmatch_lines(["ERROR nodetune?127.0.0.1?::reached*", "*1 error*"])
    assert "refused: 127.0.0.1 port 1 refused the connection" in result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nodetune-limit=x"], "ERROR: --nodetune-limit without --nodetune does nothing: add --nodetune"),
        (["--nodetune", "--nodetune-facts=nowhere"], "ERROR: nodetune: *'--nodetune-facts': no such file or folder: nowhere *"),
        (["--nodetune", MACHINE, "--nodetune-limit=gpu7"], "ERROR: nodetune: --limit: no host or group matches 'gpu7': *"),
        (["--nodetune", "--nodetune-fail-on=bad"], "ERROR: nodetune: *'--nodetune-fail-on': 'bad' is not one of*"),
        (["--nodetune", "--nodetune-select=nope"], "ERROR: nodetune: no check matches nope*"),
        (["--nodetune", "--nodetune-profile=nope"], "ERROR: nodetune: unknown profile 'nope'*"),
        (["--nodetune", "--nodetune-site=no.yml"], "ERROR: nodetune: no.yml: *"),
        (["--nodetune", "--nodetune-inventory=./no.yml"], "ERROR: nodetune: no such file or folder: ./no.yml*"),
        (["--nodetune", "--nodetune-inventory=a,b", "--nodetune-limit=c"], "ERROR: nodetune: --limit: no host*'c'*"),
        (["--nodetune", "--hosts=docker://x"], "ERROR: nodetune: cannot find out how to reach --hosts=docker://x*"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_a_mistake_is_one_line(run, arguments, said, workers):
    result = run(*arguments, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in result.errlines if line]
    assert len(lines) == 1
    result.stderr.fnmatch_lines([said])


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_a_wrong_setting_is_one_line(run, pytester, workers):
    (pytester.path / "nodetune.toml").write_text('forks = "x"\n')
    result = run("--nodetune", MACHINE, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: nodetune: nodetune.toml:1: forks: write a whole number"
    ]


def test_a_long_host_name_is_an_item_like_others(run, pytester):
    name = "☃" * 300
    facts = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
    (pytester.path / "long.json").write_text(json.dumps({**facts, "host": name}))
    result = run("--nodetune", "--nodetune-facts=long.json", "--nodetune-select=thp-unsuitable")
    assert result.ret == pytest.ExitCode.OK
    assert outcomes(result) == {"passed": 1}


@pytest.fixture(scope="module")
def farm():
    if SSHD is None:
        pytest.skip("no sshd on this machine: apt install openssh-server (CI does)")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="nodetune-farm-"))
    folder.chmod(0o755)
    made = Farm(folder)
    made.good = [made.address(), made.address()]
    made.start(dict.fromkeys(made.good, ()))
    for each in made.good:
        made.know(each)
    yield made
    made.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def inventory(farm, pytester):
    """Two hosts that are there, and one that is not."""
    hosts = {f"gpu00{number}": {"ansible_host": address} for number, address in enumerate(farm.good, 1)}
    hosts["gpu003"] = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    variables = {"ansible_ssh_common_args": f"-F {farm.config}"}
    file = pytester.path / "hosts.json"
    file.write_text(json.dumps({"all": {"hosts": hosts, "vars": variables}}))
    return file


def logins(farm):
    logs = (path.read_text() for path in farm.folder.glob("log-*"))
    return sum(text.count("Accepted publickey") for text in logs)


def test_hosts_are_reached_by_ssh_with_one_login_each(run, farm, inventory):
    before = logins(farm)
    result = run("--nodetune", f"--nodetune-inventory={inventory}", "-n2", "--nodetune-select=memory", "-v")
    result.stdout.fnmatch_lines(["ERROR nodetune?gpu003?::reached*"])
    names = {
        host: set(re.findall(rf"nodetune\[{host}\]::(\S+)", result.stdout.str())) for host in ("gpu001", "gpu002")
    }  # fmt: skip
    assert names["gpu001"] == names["gpu002"]
    assert len(names["gpu001"]) > 10
    assert logins(farm) - before == len(farm.good)


def test_the_testinfra_inventory_of_molecule_is_taken(run, farm, inventory, pytester):
    pytester.makepyfile(test_default="def test_root(host): assert host.user('root').uid == 0")
    given = ["--connection=ansible", f"--ansible-inventory={inventory}", "--nodetune-limit=gpu00[1-2]"]
    result = run("--nodetune", *given, "--nodetune-select=thp-unsuitable", "-v", "-k", "thp or gpu001")
    for host in ("gpu001", "gpu002"):
        result.stdout.re_match_lines([rf"nodetune\[{host}\]::thp-unsuitable (PASSED|FAILED|SKIPPED).*"])
    result.stdout.fnmatch_lines(["test_default.py::test_root?ansible://gpu001?*PASSED*"])
