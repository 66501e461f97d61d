"""Site files on the command line: what they may ask for, how they stack, and how one is checked."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodetune.cli import main
from tests.support.commandline import nodetune


@pytest.fixture
def cli(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["nodetune", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        shown = capsys.readouterr()
        return SimpleNamespace(exit_code=ended.value.code, stdout=shown.out, output=shown.out + shown.err)

    return run


@pytest.fixture
def findings(cli):
    def audit(*words):
        (host,) = json.loads(cli("audit", *words, "--format", "json").stdout)["hosts"]
        return {found["check"]: found for found in host["findings"]}

    return audit


@pytest.fixture
def site(tmp_path):
    def write(text, name="site.yml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_parameter_that_does_not_exist_is_manual_work_in_a_plan(cli, site):
    given = site("""
    add:
      - {id: site-lacks, sysctl: net.foo.bar, accept: 1, set: 1}
      - {id: site-has, sysctl: kernel.panic, accept: 7, set: 7}
    """)
    assert Path("/proc/sys/kernel/panic").is_file()
    plan = cli("plan", "--site", given, "-s", "site-*").output
    written, manual = plan.split("MANUAL WORK", 1)
    assert "kernel.panic" in written
    assert "foo" not in written
    assert "net.foo.bar does not exist on this host: no fix writes it" in " ".join(manual.split())


GROUPS = """
checks:
  dirty-limit-high: {accept: {at_most: 2GiB}, set: 2GiB}
groups:
  h200:
    checks:
      dirty-limit-high: {accept: {at_most: 1GiB}, set: 1GiB}
waivers:
  - {id: dirty-background-limit-high, groups: h200, reason: known, owner: jo, until: 2099-01-01}
"""


@pytest.fixture
def machine(tmp_path):
    """The inventory and the saved facts of a host in two groups, one below the other."""
    (tmp_path / "prod.ini").write_text("[h200]\nh200-x4\n[gpu:children]\nh200\n[rack1]\nh200-x4\n[other]\nlogin1\n")
    return ["--facts", "h200-x4", "-i", tmp_path / "prod.ini"]


CHECKS = ("-s", "dirty-limit-high", "-s", "dirty-background-limit-high")


def test_the_inventory_decides_values_and_waivers_of_a_host(findings, site, machine):
    found = findings(*machine, "--site", site(GROUPS), *CHECKS)
    assert found["dirty-limit-high"]["wanted"] == "at most 1 GiB"
    assert found["dirty-background-limit-high"]["status"] == "waived"
    found = findings(*machine, "--site", site(GROUPS.replace("h200", "other")), *CHECKS)
    assert found["dirty-limit-high"]["wanted"] == "at most 2 GiB"
    assert found["dirty-background-limit-high"]["status"] == "fail"


def test_a_plan_of_saved_facts_has_the_values_of_the_group(cli, site, machine):
    assert "→ 1 GiB" in cli("plan", *machine, "--site", site(GROUPS), *CHECKS).output


@pytest.mark.parametrize(
    "given", [[], ["-i", "localhost"], ["--facts", "h200-x4"], ["-i", "127.0.0.[1-2]", "--timeout", "1"]]
)
def test_hosts_of_no_inventory_are_in_no_group_and_that_is_said(cli, site, given):
    path = site(GROUPS)
    done = cli("audit", "--site", path, "-s", "dirty-limit-high", "--fail-on", "never", *given)
    assert done.exit_code == (3 if "127.0.0.[1-2]" in given else 0), done.output
    assert (
        f"nodetune: {path}: what it says for groups (h200) is left out, because hosts of no inventory are in no group: "
        "give one with -i\n"
    ) in done.output


def test_a_host_of_no_inventory_has_the_values_for_all(site, cli, machine):
    path = site(GROUPS)
    (host,) = json.loads(cli("audit", "--facts", "h200-x4", "--site", path, *CHECKS, "--format", "json").stdout)[
        "hosts"
    ]
    found = {each["check"]: each for each in host["findings"]}
    assert found["dirty-limit-high"]["wanted"] == "at most 2 GiB"
    assert found["dirty-background-limit-high"]["status"] == "fail"
    assert "is left out" not in cli("audit", *machine, "--site", path, *CHECKS).output


def test_site_none_is_no_site_file_in_spite_of_the_settings(tmp_path, site):
    site("checks: {slow-start-after-idle-on: {severity: critical}}\n")
    (tmp_path / "nodetune.toml").write_text('site = "site.yml"\n')
    words = ("audit", "--facts", "h200-x4", "-s", "slow-start-after-idle-on")
    assert " critical" in nodetune(*words, cwd=tmp_path).stdout
    done = nodetune(*words, "--site", "none", cwd=tmp_path)
    assert " critical" not in done.stdout
    assert "--site none" in done.stdout, "the proposed commands do without, too"
    done = nodetune(*words, "--site", "none", "--site", "site.yml", cwd=tmp_path)
    assert (done.returncode, "--site none means no site file: give it alone" in done.stderr) == (2, True)


def test_contradicting_equal_groups_stop_a_run_at_once(cli, site, machine):
    text = "groups:\n  gpu: {checks: {swappiness-high: off}}\n  rack1: {checks: {swappiness-high: on}}\n"
    done = cli("audit", *machine, "--site", site(text))
    assert done.exit_code == 2
    assert "line 3 (group rack1)" in done.output
    assert "line 2 (group gpu)" in done.output


def test_a_later_site_file_wins_and_both_are_proposed(cli, findings, site, machine):
    first, later = site("checks:\n  dirty-limit-high: {accept: 3, set: 3}\n", "a.yml"), site(GROUPS, "b.yml")
    words = [*machine, "--site", first, "--site", later, "-s", "dirty-limit-high"]
    assert findings(*words)["dirty-limit-high"]["wanted"] == "at most 1 GiB"
    assert f"--site {first} --site {later}" in " ".join(cli("audit", *words).output.split())


def test_explain_says_which_file_sets_a_value_and_for_whom(cli, site):
    first, later = site("checks:\n  dirty-limit-high: {severity: info}\n", "a.yml"), site(GROUPS, "b.yml")
    text = cli("explain", "dirty-limit-high", "--site", first, "--site", later).output
    assert f"Set in: {first} line 2, then {later} line 3" in " ".join(text.split())
    assert "Wanted: at most 2 GiB\n" in text
    assert f"Wanted for group h200: at most 1 GiB ({later} line 7)" in " ".join(text.split())


def test_profile_show_names_the_line_of_every_value(cli, site):
    given = site(GROUPS)
    text = cli("profile", "show", "--site", given).output
    assert (
        f'group h200\n  dirty-limit-high: {{"accept": {{"at_most": 1073741824}}, "set": 1073741824}}   ({given} line 7)'
        in text
    )
    assert "waived until 2099-01-01: dirty-background-limit-high on group h200 (jo: known)" in text


WRONG = """
checks:
  swappiness-high: {accept: {at_most: 10}, set: 60}
  thp-unsuitable: {accept: never}
  numa-balancing-no: off
  swap-in-use: {sevrity: low}
groups:
  h100: {checks: {swappiness-high: {accept: 1, set: 1}}}
hosts:
  gpu09: {checks: {swap-in-use: off}}
add:
  - {id: site-motd, file: etc/motd, accept: x}
  - {id: site-panic, sysctl: kernel.panic, accept: 5, set: 6}
  - {id: site-auditd, service: auditd, accept: enabled, set: disabled}
  - {id: site-arg, kernel_arg: audit, accept: 1, set: 1}
waivers:
  - {id: swap-in-use, hosts: '@gpu', reason: r, owner: o, until: 2099-01-01}
  - {id: swap-in-use, hosts: h200-x4, reason: r, owner: o, until: 2020-01-01}
  - {id: swap-in-use, hosts: 'h200-x[3-4]', reason: r, owner: o, until: 2099-01-01}
"""


def problems(output):
    return [(line.split(":")[0], int(line.split(" line ")[1].split(":")[0])) for line in output.splitlines()[:-1]]


def test_validate_tells_everything_at_once_with_its_line(cli, site):
    done = cli("profile", "validate", site(WRONG))
    assert done.exit_code == 2
    errors = [("error", line) for line in (3, 4, 5, 6, 12, 13, 14, 17)]
    assert problems(done.output) == [*errors, ("warning", 18)], done.output
    assert "thp-unsuitable: a fix would set madvise, which accept rejects (never)" in done.output
    assert "the waiver for swap-in-use ended on 2020-01-01" in done.output
    assert done.output.endswith("8 errors, 1 warning\n")


def test_validate_compares_groups_and_hosts_with_an_inventory(cli, site, machine):
    done = cli("profile", "validate", site(WRONG), *machine[2:])
    more = set(problems(done.output)) - set(problems(cli("profile", "validate", site(WRONG)).output))
    assert more == {("error", 8), ("error", 10), ("warning", 19)}, done.output
    assert "unknown inventory group 'h100': did you mean 'h200'?" in done.output
    assert "line 19: the inventory has no h200-x3" in done.output


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "dirty-limit-high: {accept: {at_most: 8GiB}, set: 9GiB}",
            "would set 9 GiB, which accept rejects (at most 8 GiB)",
        ),
        ("min-free-kbytes-low: {accept: {at_least: 256MiB}, set: 1GiB}", ""),
        ("min-free-kbytes-low: {accept: {at_least: 256MiB}, set: 128MiB}", "would set 128 MiB"),
        ("background-services-running: {accept: {one_of: [cups]}, set: masked}", ""),
        ("background-timers-active: {set: enabled}", "a fix sets these to disabled or masked, not to enabled"),
        ("shm-small: {accept: {at_least: 64GiB}}", "shm-small lists faults and accepts only an empty list"),
        ("shm-small: {accept: {at_least: 64}}", "shm-small lists faults and accepts only an empty list"),
    ],
)
def test_validate_compares_what_a_check_computes_with_what_a_fix_sets(cli, site, override, said):
    done = cli("profile", "validate", site(f"checks:\n  {override}\n"))
    assert (done.exit_code, said in done.output) == (2 if said else 0, True), done.output


def test_a_file_with_warnings_only_is_valid(cli, site):
    text = "waivers:\n  - {id: swap-in-use, hosts: a, reason: r, owner: o, until: 2020-01-01}\n"
    done = cli("profile", "validate", site(text))
    assert done.exit_code == 0
    assert done.output.endswith("1 waiver: valid, 1 warning\n")


def test_what_changes_an_own_check_is_no_override(cli, site):
    text = "checks:\n  site-a: {gate: true}\n  swappiness-high: off\nadd:\n  - {id: site-a, sysctl: a.b, accept: 1}\n"
    assert cli("profile", "validate", site(text)).output.endswith(": 1 override, 1 site check, 0 waivers: valid\n")


def test_validate_reads_several_files_as_one(cli, site):
    first = site("add:\n  - {id: site-a, sysctl: a.b, accept: 1}\n", "a.yml")
    later = site("checks:\n  site-a: {severity: low}\n", "b.yml")
    assert cli("profile", "validate", first, later).exit_code == 0
    assert "unknown check 'site-a'" in cli("profile", "validate", later).output


def test_a_run_names_the_first_error_and_how_to_see_all(cli, site):
    given = site(WRONG)
    done = cli("checks", "--site", given)
    assert done.exit_code == 2
    assert f"{given} line 5: unknown check 'numa-balancing-no'" in done.output
    assert f"(and 3 more: nodetune profile validate {given})" in done.output


def test_aliases_that_multiply_are_one_line(cli, site):
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 10))
    done = cli("profile", "validate", site(f"l0: &l0 [x]\n{levels}"))
    assert done.exit_code == 2
    assert "not YAML: more than 100000 parts with its aliases" in done.output


@pytest.mark.parametrize("form", [[], ["--full"], ["--group-by", "host"]])
def test_an_audit_names_the_waivers_that_ended_or_match_no_host(cli, site, form):
    given = site("""
    waivers:
      - {id: clock-unsynchronized, hosts: h200-x4, reason: a test, owner: ops, until: 2026-01-31}
      - {id: gpu-driver-vulnerable, hosts: h200-x5, reason: a test, owner: ops, until: 2999-01-31}
    """)
    audit = cli("audit", "--facts", "h200-x4", "--site", given, *form).output
    said = audit.partition("WAIVERS WITHOUT EFFECT")[2].split("\n")
    assert said[1].split()[:4] == ["ended", "clock-unsynchronized", "on", "2026-01-31"]
    assert said[2].split()[:4] == ["no", "host", "gpu-driver-vulnerable", "h200-x5"]
    assert said[3].split(maxsplit=2)[2] == f"nodetune profile validate {given}"


def test_a_diff_says_what_the_site_file_waives_and_switches_off(cli, site, tmp_path):
    given = site("""
    checks: {gpu-driver-vulnerable: off}
    hosts: {other: {checks: {gpu-missing: off}}}
    waivers:
      - {id: clock-unsynchronized, hosts: h200-x4, reason: a test, owner: ops, until: 2999-01-31}
    """)
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    cli("audit", "--facts", "h200-x4", "--format", "json", "-o", before)
    cli("audit", "--facts", "h200-x4", "--format", "json", "-o", after, "--site", given)
    (host,) = json.loads(after.read_text())["hosts"]
    assert host["off"] == ["gpu-driver-vulnerable"]
    said = cli("diff", before, after)
    assert said.exit_code == 1
    told = " ".join(said.output.split())
    assert "waived medium clock-unsynchronized h200-x4" in told
    assert "→ waived: a test (ops, until 2999-01-31)" in told
    assert "off medium gpu-driver-vulnerable h200-x4" in told
    assert "→ switched off by the site file" in told
    assert "1 host compared; findings: 1 waived, 1 off" in told


@pytest.mark.parametrize("command", [["plan"], ["apply", "--dry-run"]])
def test_a_waived_finding_is_not_planned_and_its_reason_is_named(cli, site, command):
    given = site("""
    add: [{id: site-panic, sysctl: kernel.panic, accept: 7777, set: 7777}]
    waivers:
      - {id: site-panic, hosts: "*", reason: the vendor wants it, owner: ops, until: 2999-01-31}
    """)
    said = cli(*command, "--site", given, "-s", "site-panic").output
    assert "0 steps on 0 hosts; 0 findings need manual work." in said
    assert "waived   site-panic  the vendor wants it (ops, until 2999-01-31)" in said
