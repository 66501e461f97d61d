"""Others at work on a host while it is measured: told in a line, never blamed on a part, and kept out of baselines."""

import io
import json
import re
from dataclasses import replace

import jsonschema
import pytest
from rich.console import Console

from nodetune.api.model import Value
from nodetune.audit import hosts as audit_hosts
from nodetune.cli.terminal import Terminal
from nodetune.facts import machine
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.report.text import verify, verify_changes
from nodetune.verify import compare, disturbance, figures
from nodetune.verify import document as verify_document
from nodetune.verify import run as verify_run
from nodetune.verify.diagnosis import named
from nodetune.verify.evaluate import judge
from nodetune.verify.exit_code import exit_code
from nodetune.verify.model import PASS, SHORT, UNKNOWN
from nodetune.verify.suites import SuiteRequest
from nodetune.verify.verify_hosts import save_baseline
from tests.support import verify_records as records
from tests.unit.verify.test_run import idle
from tests.unit.verify.test_verify_report import schema

PYTHON = {"name": "python3", "pid": 71, "cpu": 0.41}
LOADED = {"cpu": 0.41, "cpu_seconds": 3.3, "steal": 0.0, "steal_seconds": 0.0, "processes": [PYTHON], "gpus": []}
WHY = "others used 41% of the CPUs (python3 71)"
SLOW = {"memory local node0": 200.0}
"""Half of what the other node and the baseline have."""
WANTED = SuiteRequest(only=("memory",), suite="full")


@pytest.fixture
def prove(monkeypatch):
    """prove(player, hosts, baseline, runs): proofs of a verify of memory."""
    collected = lambda targets, *_: ((each, idle(each.name), 0.1) for each in targets)  # noqa: E731
    monkeypatch.setattr(audit_hosts, "collect", collected)

    def prove(player, *hosts, baseline=None, wanted=WANTED):
        made = verify_run.VerifyRun(wanted, ConnectionOptions(), player, lambda *_: None)
        return made.prove(records.targets(*(hosts or ("gpu1",))), baseline, even_if_busy=False)

    return prove


@pytest.fixture
def own(tmp_path):
    """The site's baseline of sound figures."""
    return records.kept(records.read(records.whole()), tmp_path, on=machine.of(idle("gpu1")))


def memory(proof, subject="node0"):
    (found,) = [each for each in proof.verdicts if (each.figure.metric, each.figure.subject) == ("local", subject)]
    return found


def printed(*proofs, **more):
    out = io.StringIO()
    console = Console(file=out, width=100, highlight=False, markup=False, emoji=False)
    verify.Printer(console, proofs, WANTED, "-i prod", **more).verify()
    return out.getvalue()


def test_short_twice_on_a_quiet_host_names_its_part(prove, own):
    (proof,) = prove(records.Player(gpu1=[records.whole(**SLOW)]), baseline=own)
    assert memory(proof).status == SHORT
    assert "memory channels" in memory(proof).suspect
    assert exit_code([proof]) == TOO_SLOW


def test_below_target_while_others_work_blames_no_part(prove, own):
    (proof,) = prove(records.Player(others={"gpu1": [LOADED]}, gpu1=[records.whole(**SLOW)]), baseline=own)
    found = memory(proof)
    assert (found.status, found.suspect, found.disturbed) == (UNKNOWN, "", WHY)
    assert found.reason == f"below target, but disturbed: {WHY}"
    assert proof.short == []
    assert exit_code([proof]) == INCOMPLETE, "nobody knows whether it is as expected"
    text = printed(proof)
    assert len(re.findall(rf"^loaded +memory +{re.escape(WHY)}$", text, re.MULTILINE)) == 1
    assert "so no part is blamed" in text
    assert "when the host is idle: nodetune verify -i prod -l gpu1 --only memory" in text
    assert "1 disturbed" in text
    assert "channels" not in text


@pytest.mark.parametrize("others", [[LOADED, {}], [{}, LOADED]])
def test_below_target_must_be_seen_twice_undisturbed(prove, own, others):
    (proof,) = prove(records.Player(others={"gpu1": others}, gpu1=[records.whole(**SLOW)]), baseline=own)
    assert memory(proof).status == UNKNOWN
    assert memory(proof).again == (200.0,)
    assert proof.disturbed == [("memory", WHY)] or proof.disturbed[-1] == ("memory", WHY)


def test_what_passes_when_measured_again_passes(prove, own):
    player = records.Player(others={"gpu1": [LOADED, {}]}, gpu1=[records.whole(**SLOW), records.whole()])
    (proof,) = prove(player, baseline=own)
    assert memory(proof).status == PASS


def test_what_reaches_its_target_although_others_work_passes(prove, own):
    (proof,) = prove(records.Player(others={"gpu1": [LOADED]}, gpu1=[records.whole()]), baseline=own)
    assert memory(proof).status == PASS
    assert exit_code([proof]) == OK
    assert "loaded   memory" in printed(proof), "told all the same"


def test_disturbed_figures_are_nobodys_peers():
    told = [records.record("gpu_copy", "h2d", f"GPU{number}", 30.0) for number in range(8)]
    loaded = [replace(each, disturbed=(WHY,)) for each in records.read(told)]
    calm = records.read([records.record("gpu_copy", "h2d", "GPU0", 30.0)], "gpu2")
    unknown = machine.Machine()
    verdicts = judge([*loaded, *calm], {"gpu1": unknown, "gpu2": unknown})
    assert {each.status for each in verdicts} == {UNKNOWN}
    assert verdicts[0].reason == f"disturbed: {WHY}"


def test_an_undisturbed_figure_is_not_compared_with_disturbed_ones():
    told = [records.record("gpu_copy", "h2d", f"GPU{number}", 54.0 if number else 30.0) for number in range(8)]
    calm, *others = records.read(told)
    found = [calm, *(replace(each, disturbed=(WHY,)) for each in others)]
    assert judge(found, {"gpu1": machine.Machine()})[0].status == UNKNOWN, "no peer is left that could prove it slow"


def test_jitter_finds_others_and_is_not_excused_by_them():
    told = [
        records.record("jitter", "lost", f"cpu{number}", 0.1 if number else 60.0, "%", "lower") for number in range(8)
    ]
    found = [replace(each, disturbed=(WHY,)) for each in records.read(told)]
    assert judge(found, {"gpu1": machine.Machine()})[0].status == SHORT


def test_memory_channels_of_a_virtual_machine_are_no_suspects(own):
    slow = records.read(records.whole(**SLOW))
    facts = idle("gpu1")
    known = machine.of(facts)
    assert not known.virtual
    assert machine.of(replace(facts, facts={**facts.facts, "host.virtual": Value(value=True)})).virtual
    for virtual, says in ((False, "memory channels"), (True, "no part of this virtual machine")):
        own_machine = replace(known, virtual=virtual)
        verdicts = named(judge(slow, {"gpu1": own_machine}, own), [], own_machine)
        (short,) = [each for each in verdicts if each.status == SHORT]
        assert says in short.suspect
        assert ("channels" in short.suspect) != virtual


# What counts as a disturbance


def reasons(others, told=None, host="gpu1"):
    (figure,) = records.read([told or records.record("memory", "local", "node0", 400.0)], host)
    return disturbance.marked(figure, {("gpu1", figure.measurement): others}).disturbance


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({}, ""),
        (LOADED, WHY),
        ({**LOADED, "cpu": 0.05}, ""),
        ({**LOADED, "cpu_seconds": 0.1}, ""),
        ({**LOADED, "processes": []}, "others used 41% of the CPUs"),
        (
            {**LOADED, "processes": [PYTHON, {"name": "fio", "pid": 9}, {**PYTHON, "pid": 72}]},
            "others used 41% of the CPUs (python3 71 72, fio 9)",
        ),
        ({"steal": 0.12, "steal_seconds": 1.0}, "the hypervisor gave 12% of the CPU time to others"),
        ({"steal": 0.12, "steal_seconds": 0.05}, ""),
        ({"cpu": "much", "steal": None, "processes": 7, "gpus": 7}, ""),
        (
            {**LOADED, "processes": [7, {"name": "\x1b[31mevil", "pid": 1}]},
            "others used 41% of the CPUs (\\x1b[31mevil 1)",
        ),
    ],
)
def test_only_what_is_more_than_tolerances_forgive_disturbs(others, why):
    assert reasons(others) == why


@pytest.mark.parametrize(
    ("line", "subject", "why"),
    [
        (
            {"gpu": "GPU0", "users": "process 71 (python3)", "held": ""},
            "GPU0",
            "GPU0 was also used by process 71 (python3)",
        ),
        ({"gpu": "GPU1", "users": "process 71 (python3)", "held": ""}, "GPU0", ""),
        ({"gpu": "GPU0", "users": "", "held": "sw_power_cap"}, "GPU0", ""),
        (
            {"gpu": "GPU0", "users": "", "held": "sw_power_cap+applications_clocks_setting"},
            "GPU0",
            "the clocks of GPU0 were held down (applications_clocks_setting)",
        ),
        *(
            ({"gpu": "GPU0", "held": setting}, "GPU0", f"the clocks of GPU0 were held down ({setting})")
            for setting in ("hw_power_brake_slowdown", "sync_boost", "display_clock_setting")
        ),
    ],
)
def test_a_gpu_is_disturbed_by_users_and_by_set_clocks(line, subject, why):
    assert reasons({"gpus": [line]}, records.record("gemm", "bf16", subject, 700.0, "TFLOP/s")) == why


def test_collectives_are_disturbed_by_who_uses_any_of_their_gpus():
    line = {"gpu": "GPU1", "users": "process 71", "held": ""}
    told = records.record("nccl", "all_reduce", "8 GPUs", 300.0, **records.NCCL)
    assert reasons({"gpus": [line]}, told) == "GPU1 was also used by process 71"


def test_a_disk_is_disturbed_by_what_it_moves_for_others():
    told = records.record("disk", "read", "/scratch", 3.0, others_io=0.4)
    assert reasons({}, told) == "40% of what the disk moved was for others"


def test_a_pair_names_the_end_at_which_it_is_disturbed():
    (figure,) = records.read([records.record("tcp", "tcp", "gpu1→gpu2", 90.0)])
    assert disturbance.marked(figure, {("gpu2", "tcp"): LOADED}).disturbance == f"gpu2: {WHY}"
    assert disturbance.marked(figure, {("gpu3", "tcp"): LOADED}).disturbance == ""


# Several runs, results and comparisons


def runs_of(values, disturbed=()):
    told = [records.record("memory", "local", "node0", value) for value in values]
    return [replace(each, disturbed=disturbed) for each in records.read(told)]


def test_disturbed_runs_do_not_count_where_there_are_others():
    (found,) = runs_of([400.0, 100.0, 402.0], ("", WHY, ""))
    assert found.value == 401.0
    assert (found.disturbance, found.lost) == ("", 1)


def test_a_result_keeps_what_disturbed_each_run(prove, tmp_path):
    wanted = replace(WANTED, repeat=2)
    proofs = prove(records.Player(others={"gpu1": [LOADED, {}]}, gpu1=[records.whole()]), wanted=wanted)
    document = verify_document.document(proofs, wanted, "")
    jsonschema.Draft202012Validator(schema("verify")).validate(document)
    assert document["hosts"][0]["others"] == {"memory": [LOADED, {}]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    assert {each.disturbed for each in verify_document.read(path).figures} == {(WHY, "")}


def test_a_comparison_does_not_judge_by_disturbed_runs():
    before, after = runs_of([400.0] * 6), runs_of([200.0] * 6, (WHY,) * 6)
    (found,) = compare.compare(before, after)
    assert found.status == compare.UNSURE
    out = io.StringIO()
    verify_changes.print_changes(out, [found])
    assert "up to 6 runs of 1 figure do not count; measure again when the hosts are idle" in " ".join(
        out.getvalue().split()
    )
    (found,) = compare.compare(before, runs_of([401.0] * 5 + [200.0], ("", "", "", "", "", WHY)))
    assert (found.status, found.lost) == (compare.SAME, 1)
    assert figures.joined(*before, *before).disturbed == ()


# Baselines


def saved(proofs, tmp_path, capsys):
    path = tmp_path / "site.json"
    kept = save_baseline(path, proofs, Terminal())
    return kept, path, capsys.readouterr().err


def test_a_disturbed_host_gives_no_baseline_and_says_what_to_do(prove, tmp_path, capsys):
    proofs = prove(records.Player(others={"gpu1": [LOADED]}, gpu1=[records.whole()]))
    kept, path, said = saved(proofs, tmp_path, capsys)
    assert not kept
    assert not path.exists()
    assert said == f"{path}: not written: during memory {WHY}: end that load or wait for it, then measure again\n"
    assert "save as the baseline" not in printed(*proofs)
    assert "not suitable for a baseline" in printed(*proofs)


def test_an_earlier_baseline_stays_as_it_was(prove, tmp_path, capsys):
    (tmp_path / "site.json").write_text("earlier")
    saved(prove(records.Player(others={"gpu1": [LOADED]}, gpu1=[records.whole()])), tmp_path, capsys)
    assert (tmp_path / "site.json").read_text() == "earlier"


def test_quiet_hosts_give_a_baseline_without_the_disturbed_one(prove, tmp_path, capsys):
    player = records.Player(others={"gpu2": [LOADED]}, gpu1=[records.whole()], gpu2=[records.whole()])
    kept, path, said = saved(prove(player, "gpu1", "gpu2"), tmp_path, capsys)
    assert not kept
    assert {each["hosts"] for each in json.loads(path.read_text())["figures"]} == {1}
    assert f"written without gpu2: during memory on gpu2 {WHY}" in said


def test_quiet_hosts_give_a_baseline(prove, tmp_path, capsys):
    kept, path, _ = saved(prove(records.Player(gpu1=[records.whole()])), tmp_path, capsys)
    assert kept
    assert path.exists()
