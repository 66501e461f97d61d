"""What a verify prints and saves: the odd ones first, nothing wider than the screen, JSON by its schema."""

import io
import json
import re
from dataclasses import replace

import jsonschema
import pytest
from rich.console import Console

from nodetune.facts.machine import UNKNOWN as UNKNOWN_MACHINE
from nodetune.foundation import json_document, paths
from nodetune.report.text import verify, verify_changes
from nodetune.verify import baseline, compare, findings
from nodetune.verify import document as verify_document
from nodetune.verify.diagnosis import named
from nodetune.verify.evaluate import again, judge
from nodetune.verify.model import Unmeasured
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest
from tests.support import documents
from tests.support import verify_records as records
from tests.support.commandline import nodetune

WANTED = SuiteRequest(suite="full", env={"NCCL_NVLS_ENABLE": "0"})


def proof_of(host="gpu1", missing=(), state="ok", **planted):
    """A host's proof as the stages make it; what is short was short again."""
    machine, figures = records.h200(host), records.read(records.whole(**planted), host)
    verdicts = judge(figures, {host: machine})
    twice = [again(each, each.figure) if each.status == "short" else each for each in verdicts]
    found = findings.findings(figures, {host: machine}, WANTED.env)
    return HostVerification(
        host, state, "", machine, tuple(named(twice, [], machine)), tuple(missing), tuple(found), (), 41.5
    )


def printed(*proofs, width=120, asked="-i prod", wanted=WANTED, **more):
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    verify.Printer(console, proofs, wanted, asked, **more).verify()
    return out.getvalue()


def schema(name):
    return json.loads(paths.bundled("data/schemas").joinpath(f"{name}.json").read_text())


def flat(text):
    return " ".join(text.split())


def test_both_roofs_of_a_gpu_tell_where_they_meet():
    roofs = [records.record("roofline", "hbm_read", f"GPU{gpu}", 3040.0 + gpu) for gpu in range(2)]
    roofs += [records.record("roofline", "bf16", f"GPU{gpu}", 824.0 - gpu, "TFLOP/s", dtype="bf16") for gpu in range(2)]
    verdicts = judge(records.read(roofs), {"gpu1": records.h200("gpu1")})
    text = printed(HostVerification("gpu1", machine=records.h200(), verdicts=tuple(verdicts)))
    assert "ridge    work of fewer than 271 operations per byte waits for memory (bf16 / hbm_read)" in text
    alone = HostVerification("gpu1", machine=records.h200(), verdicts=tuple(verdicts[:2]))
    assert "ridge" not in printed(alone)


def test_what_was_skipped_on_gpus_that_are_there_is_said():
    lost = Unmeasured("gpu1", "roofline", "skip", "no cuBLASLt on this host")
    text = printed(proof_of(missing=[lost]), wanted=replace(WANTED, require=("roofline",)))
    assert "unproven roofline was skipped on gpu1\n" in text
    assert "unproven roofline is required: skip: no cuBLASLt on this host (gpu1)\n" in text


def test_a_sound_node_is_a_line_a_kind_of_figure():
    text = printed(proof_of())
    assert re.search(
        r"^pass +gpu_copy h2d +8 GPUs +54.4 GB/s +54.2-54.6 +≥ 50.3 shipped +█+\S*·* 86%", text, re.MULTILINE
    )
    assert re.search(r"^pass +gpu_copy h2d far +8 GPUs", text, re.MULTILINE)
    assert re.search(r"^pass +gpu_p2p p2p +56 pairs", text, re.MULTILINE)
    assert re.search(r"^pass +nccl all_gather 8 GiB ▇███ +8 GPUs +357.6 GB/s", text, re.MULTILINE)
    assert "below" not in text
    assert "from the GPU of the row" not in text, "the matrix is folded unless a pair stands apart"
    proposed = "nodetune verify -i prod --suite full --env NCCL_NVLS_ENABLE=0 --save-baseline FILE"
    assert f"save as the baseline: {proposed}" in text


def test_a_floor_that_proves_nothing_is_in_parentheses():
    proof = proof_of()
    loose = tuple(replace(each, status="unknown") for each in proof.verdicts if each.expected)
    text = printed(replace(proof, verdicts=loose))
    assert re.search(r"unknown +gpu_copy h2d +8 GPUs .*\(≥ 50.3\) shipped", text)
    assert "in parentheses: a figure too loose to prove that the hardware is good" in text
    assert "parentheses" not in printed(proof)


def test_the_baseline_that_is_proposed_is_of_what_was_measured():
    wanted = SuiteRequest(
        only=("nccl", "tcp"), suite="full", network="10.1.0.0/16", nccl="/sw/my nccl", env={"A": "1 2"}
    )
    proposed = "nodetune verify -i prod --only nccl --only tcp --nccl '/sw/my nccl' --network 10.1.0.0/16 --env 'A=1 2'"
    assert f"save as the baseline: {proposed} --save-baseline FILE" in printed(proof_of(), wanted=wanted)
    assert "if you trust this" not in printed(proof_of())
    assert "save-baseline" not in printed(proof_of(), propose=False), "it was held against a baseline, or is one"


def test_figures_of_unknown_hardware_are_only_saved_by_request():
    figures = records.read([records.record("gpu_memory", "device_copy", "GPU0", 700.0)])
    machine = replace(records.h200(), model="NVIDIA T1000", gpus=1, fabric="pcie")
    text = printed(HostVerification("gpu1", machine=machine, verdicts=tuple(judge(figures, {"gpu1": machine}))))
    assert "no result was compared with a known figure: if this hardware is good" in flat(text)
    assert "--suite full --env NCCL_NVLS_ENABLE=0 --save-baseline FILE" in text
    unknown = replace(proof_of(), machine=UNKNOWN_MACHINE)
    assert "save-baseline" not in printed(unknown), "a baseline holds for like hosts, and nobody knows what it is like"


def test_a_host_with_a_finding_is_no_example_for_others():
    figures = records.read(
        [records.record("gpu_load", "tflops", "GPU2", 660.0, "TFLOP/s", reasons={"hw_thermal_slowdown": 0.5})]
    )
    found = findings.findings(figures, {"gpu1": records.h200()}, {})
    assert found
    assert "save-baseline" not in printed(replace(proof_of(), findings=tuple(found)))


@pytest.mark.parametrize("size", ["large", [1], {}, -1, True, 10**400, 1.5])
def test_a_size_that_is_none_breaks_nothing(size):
    told = records.record("nccl", "all_reduce", "8 GPUs", 300.0, **{**records.NCCL, "size": size})
    other = records.record("nccl", "all_reduce", "8 GPUs", 300.0, **{**records.NCCL, "size": 1 << 30})
    verdicts = judge(records.read([told, other]), {"gpu1": records.h200()})
    assert "nccl all_reduce" in printed(HostVerification("gpu1", machine=records.h200(), verdicts=tuple(verdicts)))


def test_what_is_below_target_comes_first_with_next_command():
    text = printed(proof_of(**{"gpu_copy h2d GPU2": 26.4, "gpu_p2p p2p GPU3→GPU5": 200.0}))
    assert text.index("below    gpu_copy  GPU2") < text.index("measurement")
    said = flat(text)
    assert "h2d: 26.4 GB/s, expected at least 51.7 (7 other GPUs: median 54.38); measured again: 26.4" in said
    assert "suspect GPU2's PCIe link (0000:52:00.0), its slot or riser" in said
    assert "next     nodetune verify -i prod -l gpu1 --only gpu_copy --env NCCL_NVLS_ENABLE=0 --gpu 2\n" in text
    assert text.count("--only gpu_copy") == 1, "one part, one command"
    assert re.search(r"^1 below +gpu_copy h2d +8 GPUs", text, re.MULTILINE)
    assert re.search(r"^GPU3 +393\.\d +.* +200\.0 +39", text, re.MULTILINE), "the matrix is shown"
    assert "save-baseline" not in text


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_nothing_is_wider_than_the_screen(width):
    text = printed(proof_of(**{"gpu_copy h2d GPU2": 26.4, "gpu_p2p p2p GPU3→GPU5": 200.0}), width=width)
    assert "GPU2" in text
    copied = [line for line in text.splitlines() if line.strip().startswith("next")]
    assert all(len(line.rstrip()) <= width for line in text.splitlines() if line not in copied)
    assert "…" not in text, "nothing is cut off"


def test_what_could_not_be_measured_stands_with_its_reason():
    missing = [Unmeasured("gpu1", "disk", "skip", "there is no fio here: install fio")]
    missing += [Unmeasured("gpu1", "gemm", "failed", "out of memory", "", f"GPU{gpu}") for gpu in (1, 2)]
    text = flat(printed(proof_of(missing=missing)))
    assert "skip disk there is no fio here: install fio" in text
    assert "failed gemm GPU1, gemm GPU2 out of memory" in text
    assert "2 failed, 1 skipped" in text


def test_hosts_that_were_not_measured_are_folded_and_named():
    refused = [HostVerification(f"gpu{n}", "refused", f"gpu{n}: nothing listens on port 22") for n in (2, 3, 4)]
    text = printed(proof_of(), *refused, HostVerification("gpu9", "busy", "its GPUs are in use by python (40001)"))
    assert "refused  gpu[2-4]: nothing listens on port 22\n" in text
    assert "busy  gpu9: its GPUs are in use by python (40001)\n" in text


def test_nothing_from_a_host_reaches_the_terminal_raw():
    hostile = {"measurement": "memory\x1b[2J", "metric": "[bold]x", "subject": "node0\x1b]0;x\x07", "samples": [1.0]}
    figures = records.read([{**hostile, "unit": "GB/s\x1b"}])
    proof = replace(proof_of(), verdicts=tuple(judge(figures, {"gpu1": records.h200()})))
    text = printed(proof)
    assert "\x1b" not in text
    assert "[bold]x" in text


def test_the_document_keeps_its_schema():
    missing = [Unmeasured("gpu1", "disk", "skip", "no fio")]
    proofs = [proof_of(missing=missing, **{"gpu_copy h2d GPU2": 26.4}), HostVerification("gpu2", "refused", "no")]
    document = verify_document.document(proofs, WANTED, "-i prod")
    jsonschema.Draft202012Validator(schema("verify")).validate(json.loads(json.dumps(document)))
    short = [each for each in document["hosts"][0]["measurements"] if each["status"] == "short"]
    assert [(each["subject"], each["expected"]["kind"]) for each in short] == [("GPU2", "siblings")] * 2
    again = "nodetune verify -i prod -l gpu1 --only gpu_copy --env NCCL_NVLS_ENABLE=0 --gpu 2"
    assert short[0]["reproduce"] == again
    assert document["summary"]["statuses"]["short"] == 2
    assert document["summary"]["measured"] == 1


def test_a_saved_baseline_omits_figures_below_target(tmp_path):
    document = verify_document.kept([proof_of(**{"gpu_copy h2d GPU2": 26.4}), proof_of("gpu2")])
    jsonschema.Draft202012Validator(schema("baseline")).validate(json.loads(json.dumps(document)))
    (near,) = [each for each in document["figures"] if each["metric"] == "h2d" and each["conditions"]["local"]]
    assert (near["subject"], near["count"], near["hosts"]) == ("GPU", 15, 2)
    assert near["on"] == {"gpu": "NVIDIA H200", "gpus": 8, "fabric": "nvswitch"}
    path = tmp_path / "site.json"
    path.write_text(json.dumps(document))
    figure = records.read(records.whole())[4]
    assert baseline.read(path).expectation(figure, records.h200()).kind == "baseline"


def test_a_saved_result_is_read_back_as_it_was(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(verify_document.document([proof_of()], WANTED, "")))
    found = {
        (each.measurement, each.metric, each.subject, repr(each.about)): each
        for each in verify_document.read(path).figures
    }
    assert len(found) == len(proof_of().verdicts) > 1
    for each in proof_of().verdicts:
        figure = each.figure
        assert found[figure.measurement, figure.metric, figure.subject, repr(figure.about)].runs == figure.runs


@pytest.mark.parametrize("text", ["no", "[]", '{"schema": "nodetune.audit/1", "hosts": []}', "[" * 100_000])
def test_a_result_that_is_none_is_told_in_one_line(text, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(json_document.DocumentError, match="save one with nodetune verify --format json") as told:
        verify_document.read(path)
    assert str(path) in str(told.value)


@pytest.mark.parametrize("hosts", [7, [7], [{"measurements": 7}], [{"measurements": [7, {"runs": 7}, {"runs": [7]}]}]])
def test_nonsense_in_a_result_is_passed_over(hosts, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"schema": "nodetune.verify/1", "hosts": hosts}))
    assert verify_document.read(path).figures == []


def changes(factor, runs=6):
    def side(scale):
        told = [records.record("gpu_copy", "h2d", "GPU0", scale * (54 + run / 50), local=True) for run in range(runs)]
        return records.read(told)

    return compare.compare(side(1.0), side(factor))


@pytest.mark.parametrize("columns", ["80", "120"])
def test_changes_are_told_with_the_detectable_difference(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    out = io.StringIO()
    verify_changes.print_changes(out, changes(0.9))
    assert re.search(r"before +after +change +seen from", out.getvalue())
    assert re.search(r"worse +gpu_copy h2d +GPU0 +54[.\d]* +48\.\d GB/s +-10\.0% +6\.\d%", out.getvalue())
    assert "1 worse" in out.getvalue()


def test_a_comparison_of_many_hosts_fits_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = [
        records.read([records.record("memory", "local_one_thread", "node0", 1712.0 + run) for run in range(6)], host)
        for host in ("gpu-worker-0117.example", "gpu-worker-0118.example")
    ]
    out = io.StringIO()
    verify_changes.print_changes(out, compare.compare([each for side in told for each in side], told[0] + told[1]))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert len(re.findall(r"node0 +gpu-worker-.*1714 +1714 GB/s +\+0.0%", out.getvalue())) == 1


def test_the_shown_change_is_that_of_the_shown_figures(monkeypatch):
    """Medians may rise where most pairs of runs fall: 17.1 to 17.4 was shown as -1.9 %."""
    before = (16.0, 17.0, 17.1, 21.0, 22.0)
    after = (15.5, 16.0, 17.4, 17.5, 17.6)
    sides = [
        records.read([records.record("memory", "local", "node0", value) for value in side]) for side in (before, after)
    ]
    (found,) = compare.compare(*sides)
    assert found.shift < 0, "Hodges and Lehmann's estimate"
    assert found.change == pytest.approx(17.4 / 17.1 - 1)
    assert found.status == "no change"
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    verify_changes.print_changes(out, [found])
    assert re.search(r" 17\.1 +17\.4 GB/s +\+1\.8%", out.getvalue())
    (told,) = verify_document.compared([found])["changes"]
    assert (told["change"], told["shift"], told["interval"]) == (found.change, found.shift, list(found.interval))


def test_too_few_runs_are_told_and_what_to_do():
    out = io.StringIO()
    verify_changes.print_changes(out, changes(0.9, runs=1))
    assert "--repeat 5" in out.getvalue()
    out = io.StringIO()
    verify_changes.print_changes(out, [])
    assert "the files have no figures in common" in out.getvalue()


@pytest.mark.parametrize(("runs", "said"), [(6, True), (1, False)])
def test_the_chance_of_a_false_change_is_said_of_judged_figures_only(runs, said):
    out = io.StringIO()
    verify_changes.print_changes(out, changes(0.9, runs=runs))
    assert ("of 1 figure without change about 0.01 would show one" in " ".join(out.getvalue().split())) == said


def test_figures_that_are_not_measured_again_are_named(tmp_path):
    """A host lost a GPU, one was not reached after, and one never: that is not "no change" and 0."""

    def saved(name, **hosts):
        told = []
        for host, gpus in hosts.items():
            measured = [records.record("gpu_copy", "h2d", f"GPU{gpu}", 54.0) for gpu in gpus]
            runs = [{**each, "runs": [[54.0 + run / 50] for run in range(6)]} for each in measured]
            told.append({"name": host, "state": "ok" if gpus else "unreachable", "measurements": runs})
        (tmp_path / name).write_text(json.dumps({"schema": "nodetune.verify/1", "hosts": told}))

    saved("before.json", g1=(0, 1), g2=(0, 1), g3=())
    saved("after.json", g1=(0,), g2=(), g3=())
    for words in (("diff",), ("verify", "--compare")):
        done = nodetune(*words, "before.json", "after.json", cwd=tmp_path)
        assert done.returncode == 3
        assert "1 no change" in done.stdout
        assert "not measured after: g1: gpu_copy h2d GPU1" in done.stdout
        assert "not measured both times: g2 (ok → unreachable)" in done.stdout
        assert "not measured both times: g3 (unreachable → unreachable)" in done.stdout
    done = nodetune("diff", "before.json", "after.json", "--format", "json", cwd=tmp_path)
    told = documents.valid("compare", done.stdout)
    assert [(each["host"], each["subject"]) for each in told["missing"]] == [("g1", "GPU1")]
    assert [each["host"] for each in told["states"]] == ["g2", "g3"]
    saved("more.json", g1=(0, 1, 2), g2=(0, 1))
    saved("before.json", g1=(0, 1), g2=(0, 1))
    assert nodetune("diff", "before.json", "more.json", cwd=tmp_path).returncode == 0


def test_a_comparison_is_data_too():
    document = verify_document.compared(changes(0.9))
    jsonschema.Draft202012Validator(schema("compare")).validate(document)
    (change,) = document["changes"]
    assert (change["status"], change["runs"]) == ("worse", [6, 6])
    assert change["interval"][0] < change["change"] < change["interval"][1] < 0
