"""The audit by who acts: one line a cause, one command a section, on a screen however many hosts there are."""

import io
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune.api.device import Device
from nodetune.api.model import Fix, HostResult
from nodetune.audit.manual_steps import filled
from nodetune.cli.main import group
from nodetune.report import sections
from nodetune.report.sections import CommandOptions
from nodetune.report.text import audit
from tests.support.reporting import finding, fixable, judged, result
from tests.unit.cli.test_cli import nodetune

DATA = Path(__file__).parents[2] / "data"
MACHINES = sorted((DATA / "synthetic").glob("*.json"))
UNTUNED = DATA / "synthetic" / "hgx-h200-untuned.json"
GPUS = tuple(Device(f"GPU{number}", f"0000:{number}1:00.0") for number in range(8))
FLEET = 10_000


@pytest.fixture
def printed(monkeypatch):
    def print_audit(results, width=110, commands=None):
        monkeypatch.setenv("COLUMNS", str(width))
        stream = io.StringIO()
        audit.write(results, stream, commands)
        return stream.getvalue().splitlines()

    return print_audit


@pytest.fixture(scope="module")
def machines():
    return judged(*MACHINES)


@pytest.fixture(scope="module")
def untuned():
    return judged(UNTUNED)


def gpu_fault(*gpus, check="gpu-lost", severity="critical", **more):
    seen = {f"GPU{gpu}": "GPU is lost" for gpu in gpus}
    return finding(check, severity, subjects=seen, observed="GPU is lost", wanted="ok", repair=True, **more)


def simulated(untuned):
    """Ten thousand hosts: most have the faults of one untuned machine, some a broken GPU, some do not answer."""
    chance = random.Random(1)
    shared = tuple(found for found in untuned.findings if not found.repair)
    for number in range(FLEET):
        name = f"gpu{number:05}"
        if number % 50 == 7:
            yield HostResult(name, "unreachable", f"{name}: timed out after 10 s")
        elif number % 97 == 3:
            yield HostResult(name, "no login", f"{name}: Permission denied (publickey)")
        else:
            lost = (gpu_fault(chance.randrange(8)),) if number % 61 == 0 else ()
            blind = (finding("edac", status="unknown", reason="/sys/x: permission denied: needs root (--become)"),)
            yield replace(untuned, host=name, message="", findings=(*lost, *shared, *(blind if number % 7 else ())))


def test_an_untuned_server_fits_sixty_lines(printed, untuned):
    assert len(printed(untuned, commands=CommandOptions(f"--facts {UNTUNED}", saved=True))) <= 60


def test_five_different_machines_fit_ninety_lines(printed, machines):
    assert len(machines) == 5
    assert len(printed(machines, commands=CommandOptions("--facts machines", saved=True))) <= 90


def test_ten_thousand_hosts_fit_one_screen(printed, untuned):
    lines = printed(list(simulated(untuned[0])), commands=CommandOptions("-i prod"))
    assert len(lines) <= 100
    text = "\n".join(lines)
    assert "9700 hosts audited, 300 not reached" in text or re.search(r"\d+ hosts audited, \d+ not reached", text)
    assert re.search(r"high +\d{4} of 10000 hosts +governor", text), "what nearly all share is said once"
    assert re.search(r"unreachable  200 hosts  gpu\[00007,.*timed out after 10 s", text)
    assert len(re.findall(r"^  gpu\d+ +1 critical", text, re.MULTILINE)) == 10, "the worst ten by name"


def test_a_clean_host_is_three_lines(printed):
    clean = judged(DATA / "synthetic" / "hgx-h200-tuned.json")
    assert all(found.status in ("pass", "skip") for found in clean[0].findings)
    assert len(printed(clean, commands=CommandOptions("-i gpu001"))) <= 3
    assert printed(clean, commands=CommandOptions("-i gpu001"))[-1] == "next  nodetune verify -i gpu001"


def test_every_failing_cause_has_a_line_or_is_counted(machines):
    report = sections.build(machines)
    shown = Counter(id(found) for section in report.sections for line in section.lines for _, found in line.members)
    causes = [found for each in machines for found in each.causes()]
    told = [found for found in causes if shown[id(found)]]
    assert len(told) + report.lesser == len(causes)
    assert {found.severity for found in causes if not shown[id(found)]} == {"low", "info"}


@pytest.mark.parametrize("every", [False, True])
def test_the_counts_of_sections_and_severities_add_up(machines, every):
    report = sections.build(machines, every=every)
    counted = sum(section.findings for section in report.sections if section.name != sections.UNKNOWN)
    assert counted + report.lesser == report.findings == sum(report.summary.failing.values())
    assert every == (report.lesser == 0)
    assert report.findings + report.parts == sum(len(list(each.failing())) for each in machines)
    assert report.parts > 0


def test_findings_are_in_the_section_of_who_acts():
    reboot = replace(fixable().fix, disruption="reboot")
    found = {
        sections.BROKEN: finding(repair=True),
        sections.NOW: fixable(),
        sections.DRAINED: replace(fixable(), fix=reboot),
        sections.HAND: finding(),
        sections.UNKNOWN: finding(status="unknown"),
    }
    assert {name: sections.section_of(each) for name, each in found.items()} == {name: name for name in sections.NAMES}


def test_a_cause_is_one_line_with_the_number_of_its_consequences(printed):
    cause = gpu_fault(3)
    part = gpu_fault(3, check="gpu-xid-hardware", part_of="gpu-lost")
    lines = printed([replace(result("a", cause, part), devices=GPUS)])
    assert "BROKEN: take it out of service (1 finding)" in lines
    assert "1 finding: 1 critical" in lines[1]
    assert lines[1].endswith("1 consequence (+)")
    assert [line.split() for line in lines if line.startswith("  critical  ")] == [
        ["critical", "GPU3", "0000:31:00.0", "GPU", "is", "lost", "→", "ok", "gpu-lost", "+1"]
    ]


def test_the_dearest_of_one_severity_comes_first(printed):
    lines = printed([result("a", finding("a-setting"), finding("b-link", cost="bandwidth"))])
    assert [line.split()[-1] for line in lines if line.startswith("  high")] == ["b-link", "a-setting"]


def test_a_long_name_and_a_short_value_stay_on_one_row(printed):
    setting = replace(fixable(), severity="medium", name="net.ipv4.tcp_slow_start_after_idle", observed="1", wanted="0")
    (row,) = (line for line in printed([result("a", setting)]) if "net.ipv4" in line)
    assert row.split()[:4] == ["medium", "net.ipv4.tcp_slow_start_after_idle", "1", "→"]


def test_hosts_with_one_fault_are_folded_into_its_line(printed):
    hosts = [
        replace(result(f"gpu{number:03}", *([gpu_fault(3)] if number in (3, 17) else [])), devices=GPUS)
        for number in range(80)
    ]
    (row,) = (line for line in printed(hosts) if line.startswith("  critical"))
    assert row.split()[:3] == ["critical", "gpu[003,017]", "GPU3"]
    assert "BROKEN: take 2 hosts out of service (2 findings)" in printed(hosts)


def test_what_nearly_all_hosts_share_is_said_before_the_rest(printed):
    hosts = [
        result(f"gpu{number:02}", finding("common"), *([finding("odd", cost="hardware")] if number < 9 else []))
        for number in range(80)
    ]
    rows = [line.split()[-1] for line in printed(hosts) if line.startswith("  high")]
    assert rows == ["common", "odd"]
    assert sum("all 80 hosts" in line for line in printed(hosts)) == 1


@pytest.mark.parametrize("width", [40, 80, 99, 100, 110, 160, 300])
def test_rows_fit_the_screen_and_part_no_address_or_number(printed, machines, width):
    lines = printed(machines, width, CommandOptions("-i prod"))
    room = min(max(width, 80), 160)
    rows = [line for line in lines if "nodetune " not in line]
    assert max(map(len, rows)) <= room
    assert any(line.endswith("  governor-not-performance") for line in lines) == (room >= 100)
    text = "\n".join(lines)
    for whole in ("0000:61:00.0", "580.95.05 → 580.178.04", "0012:03:00.0"):
        assert whole in text


@pytest.mark.parametrize("width", [80, 110, 160])
def test_no_command_is_broken_over_lines(printed, untuned, width):
    asked = f"--facts {'x' * 150}.json"
    lines = printed(untuned, width, CommandOptions(asked, saved=True))
    assert [line.split(None, 2)[2] for line in lines if line.startswith("  to do")] == [
        f"nodetune explain {asked} --section broken",
        f"nodetune plan {asked} --max-disruption new-sessions",
        f"nodetune plan {asked} --max-disruption reboot",
        f"nodetune explain {asked} --section by-hand",
    ]


def test_a_pipe_is_as_wide_as_its_text_needs(monkeypatch, untuned):
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    audit.write(untuned, stream)
    lines = stream.getvalue().splitlines()
    assert 100 < max(map(len, lines)) <= 120
    assert "\x1b" not in stream.getvalue()


def test_a_severity_has_its_colour_and_its_word(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    audit.write([result("a", finding(severity="critical"))], stream)
    assert re.search(r"\x1b\[[\d;]+mcritical", stream.getvalue())


def test_nothing_from_a_host_is_more_than_text(printed):
    hostile = "\x1b[2J\u202e" * 40
    lines = printed([result(hostile, finding(observed=hostile, subjects={hostile: hostile}))])
    assert all(line.isprintable() for line in lines)


def saved(name, *more):
    return ["--facts", str(DATA / "synthetic" / f"{name}.json"), *more]


@pytest.mark.parametrize("section", sections.NAMES[:4])
def test_the_command_of_a_section_of_saved_facts_acts_on_that_section(untuned, section):
    report = {
        each.name: each for each in sections.build(untuned, CommandOptions(f"--facts {UNTUNED}", saved=True)).sections
    }
    done = nodetune(*report[section].command.split()[1:])
    assert done.returncode == 0, done.stderr
    for line in report[section].lines:
        assert line.check in done.stdout
    others = {"broken": "by-hand", "by-hand": "broken", "apply-now": "apply-drained"}
    if section in others:
        steps = done.stdout.partition("manual ")[0]
        assert not [line.check for line in report[others[section]].lines if f"{line.check} " in steps]


def test_the_command_of_what_is_unknown_names_each_check():
    facts = DATA / "corpus" / "a40-10x.json"
    (section,) = (each for each in sections.build(judged(facts)).sections if each.name == "unknown")
    done = nodetune("explain", "--facts", facts, "--section", "unknown")
    assert done.returncode == 0
    ids = {found.check for line in section.lines for _, found in line.members}
    assert len(ids) > 100
    assert not [each for each in ids if each not in done.stdout]
    assert "not collected: collect the facts again" in done.stdout


def test_the_commands_for_live_hosts_are_ones_that_exist(untuned):
    report = sections.build(untuned, CommandOptions("-i prod -l gpu001 -b -p training", "-s gpu"))
    words = [each.command.split() for each in report.sections] + [report.full.split()]
    for _, verb, *options in words:
        assert group.get_command(None, verb).make_context(verb, options)
    assert words[1][1:] == ["apply", "-i", "prod", "-l", "gpu001", "-b", "-p", "training", "-s", "gpu"]
    assert words[2][-5:] == ["--max-disruption", "reboot", "--drain", "slurm", "--reboot"][-5:]


def test_what_slurm_reaches_is_planned_and_not_applied():
    commands = CommandOptions("--transport slurm -i gpu001")
    assert commands.of(sections.NOW) == "nodetune plan --transport slurm -i gpu001 --max-disruption new-sessions"


def test_steps_name_the_devices_of_the_host():
    found = gpu_fault(3)
    host = replace(result("gpu001"), devices=GPUS)
    told = filled("nvidia-smi -r -i INDEX; lspci -s BDF; scontrol update NodeName=NODE", host, found)
    assert told == "nvidia-smi -r -i 3; lspci -s 0000:31:00.0; scontrol update NodeName=gpu001"


def test_steps_for_several_devices_list_them_below():
    told = filled('setpci -s BDF; a="BDF;BDF;..."', replace(result("a"), devices=GPUS), gpu_fault(1, 2))
    assert told == 'setpci -s BDF; a="0000:11:00.0;0000:21:00.0"\nBDF: 0000:11:00.0, 0000:21:00.0'


@pytest.mark.parametrize("name", ["eth0; reboot", "$(reboot)", "-rf", "a b", "`id`"])
def test_a_name_that_a_shell_would_run_is_not_put_into_a_command(name):
    found = finding(subjects={name: "slow"}, observed="slow")
    assert filled("ethtool LINK; systemctl disable --now NAME", result(name, found), found) == (
        "ethtool LINK; systemctl disable --now NAME"
    )


def test_a_section_is_explained_with_the_commands_of_the_host():
    done = nodetune("explain", *saved("hgx-h200-untuned", "--section", "broken"))
    assert done.returncode == 0
    assert "nvidia-smi -r -i 3 for a reset" in " ".join(done.stdout.split())
    assert "NVLink" in done.stdout
    hand = nodetune("explain", *saved("hgx-h200-untuned", "--section", "by-hand")).stdout
    assert "mlxlink -d mlx5_2" in hand
    assert "confirm  lspci -vv -s 0000:4f:00.0 | grep -E 'LnkCap:|LnkSta:'" in hand


def test_some_checks_of_a_section_can_be_explained_alone():
    done = nodetune("explain", "gpu-recovery-needed", *saved("hgx-h200-untuned", "--section", "broken"))
    assert "gpu-recovery-needed" in done.stdout
    assert "nvlink-down" not in done.stdout


def test_an_empty_section_says_so():
    done = nodetune("explain", *saved("hgx-h200-tuned", "--section", "broken"))
    assert (done.returncode, done.stdout) == (0, "BROKEN: take it out of service: nothing\n")


def test_explain_wants_a_check_or_a_section():
    done = nodetune("explain")
    assert done.returncode == 2
    assert "give the ID of a check, or --section" in done.stderr


def test_the_full_form_has_what_the_short_one_counts():
    short, full = (nodetune("audit", *saved("hgx-h200-untuned", *more)).stdout for more in ([], ["--full"]))
    assert "18 low and info: nodetune audit --facts" in short
    assert "max-map-count-low" not in short
    assert "max-map-count-low" in full
    assert "observed 65530   wanted at least 262144" in full


def test_a_fix_is_named_with_what_it_sets():
    fix = Fix("kernel_arg", "iommu", "pt", "reboot")
    found = finding("iommu", fix=fix, observed="DMA-FQ", wanted="identity", name="IOMMU")
    (line,) = sections.build([result("a", found)]).sections[0].lines
    assert (line.subject, line.text) == ("IOMMU", "DMA-FQ → iommu=pt (reboot)")


def test_an_odd_one_is_told_with_what_its_peers_have():
    found = finding(
        subjects={"nvme4": "7 errors"}, observed="nvme4: 7 errors", peers=6, odd=("nvme4",), usual="0 errors"
    )
    (line,) = sections.build([result("a", found)]).sections[0].lines
    assert (line.subject, line.text) == ("nvme4", "7 errors; 5 like it: 0 errors")
