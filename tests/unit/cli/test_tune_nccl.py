"""The options of `nodetune tune nccl`: what they mean, and that a mistake costs one line."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nodetune.cli import requests
from nodetune.cli.commands._tune import nccl as _tune_nccl
from nodetune.tune.benches.nccl import NcclBench
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.benches.nccl_space import Survey
from nodetune.verify import remote
from tests.support.nccl_host import Host, noisy


@pytest.fixture
def typed():
    """Return what the command line means: a request, or its one line of error."""

    def parse(*words):
        found = []

        @requests.command("nccl", NcclRequest)
        @_tune_nccl.options
        def command(request, mix):
            found.append(_tune_nccl._of_job(request, mix))
            _tune_nccl._targets(request)

        result = CliRunner().invoke(command, words)
        if isinstance(result.exception, Exception):
            return str(result.exception)
        return found[0] if result.exit_code == 0 else result.output.strip().splitlines()[-1]

    return parse


def test_by_default_collectives_with_computation_are_tuned(typed):
    wanted = typed()
    assert (wanted.aim, wanted.names) == ("overlap", ("all_reduce", "all_gather", "reduce_scatter"))
    assert (wanted.aims, wanted.guards, wanted.ratio) == ((64 << 20, 256 << 20), (), 1.0)
    assert typed("--plugin", "rows").aim == "bandwidth", "rows of the plugin hold for collectives alone"


def test_large_messages_of_two_collectives_are_tuned_for_bandwidth(typed):
    wanted = typed("--objective", "bandwidth")
    assert wanted.names == ("all_reduce", "all_gather")
    assert wanted.aims == (256 << 20, 1 << 30)
    assert wanted.guards == (64 << 10, 1 << 20, 16 << 20)


def test_sizes_are_quantities_or_bytes_each_once_in_order(typed):
    wanted = typed("--sizes", "1GiB, 64KiB,65536,16GiB", "--env", "NCCL_NVLS_ENABLE=0", "--env", "A=b=c")
    assert wanted.aims == (65536, 1 << 30, 16 << 30)
    assert 65536 not in wanted.guards
    assert wanted.env == {"NCCL_NVLS_ENABLE": "0", "A": "b=c"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sizes", ""], "give one to 8 sizes"),
        (["--sizes", "1,2,3"], "write 4 bytes to 16GiB"),
        (["--sizes", "256"], None),
        (["--sizes", "-8"], "write 4 bytes"),
        (["--sizes", "17GiB"], "write 4 bytes to 16GiB"),
        (["--sizes", "256XB"], "write 4 bytes to 16GiB"),
        (["--sizes", "1.5B"], "write 4 bytes"),
        (["--sizes", "big"], "write 4 bytes"),
        (["--sizes", "٣٢"], "write 4 bytes"),
        (["--sizes", ",".join(str(4 << n) for n in range(9))], "give one to 8 sizes"),
        (["--env", "NCCL"], "write NAME=VALUE"),
        (["--parameter", "NCCL_MIN_CTA"], "did you mean NCCL_MIN_CTAS?"),
        (["--parameter", "NCCL_PROTO"], "NCCL_PROTO"),
        (["--plugin", "x", "--objective", "overlap"], "remove --objective"),
        (["--plugin", "x", "--parameter", "NCCL_BUFFSIZE"], "keep one"),
        (["--env", "NCCL_BUFFSIZE=1", "--parameter", "NCCL_BUFFSIZE"], "keep one"),
        (["--multi-node"], "needs two hosts"),
        (["-i", "a,b"], "--multi-node tunes NCCL across them"),
        (["--collective", "gossip"], "gossip"),
    ],
)
def test_a_mistake_is_one_line(typed, words, said):
    found = typed(*words)
    assert said in found if said else found.aims == (256,)


def test_the_mix_of_a_job_gives_sizes_collectives_and_weights(typed, tmp_path):
    call = {"coll": "ReduceScatter", "coll_msg_size_bytes": 1 << 27, "coll_exec_time_us": 900}
    path = tmp_path / "inspector.log"
    path.write_text(json.dumps({"coll_perf": call}) + "\n")
    assert (typed("--profile", str(path)).names, typed("--profile", str(path)).aims) == (
        ("reduce_scatter",),
        (1 << 27,),
    )
    assert typed("--mix", str(path)).weights == {"reduce_scatter 134217728": 1.0}
    assert "keep one" in typed("--mix", str(path), "--sizes", "1GiB")
    assert "the job has no all_reduce there" in typed("--mix", str(path), "--collective", "all_reduce")
    path.write_text("")
    assert "no all-reduce" in typed("--profile", str(path))


def test_a_setting_without_an_algorithm_writes_no_plugin(tmp_path):
    class Bench:
        wanted, survey = NcclRequest(plugin=Path("p"), collectives=("all_gather",)), Survey("2.28.9", gpus=8)

    assert _tune_nccl.plugin_written(tmp_path / "p", Bench(), (("NCCL_MIN_CTAS", 32),)) == []
    assert not (tmp_path / "p").exists()
    rows = (("TUNER_ROWS", "allgather,0,-1,ring,-1,1,8"),)
    assert len(_tune_nccl.plugin_written(tmp_path / "p", Bench(), rows)) == 3


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host that `nodetune tune nccl` measures without a connection."""
    found = Host()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(remote, "measure", found.how)
    monkeypatch.setattr(_tune_nccl, "NcclBench", partial(NcclBench, facts=found.facts))
    return found


def tune(*words):
    found = []

    @requests.command("nccl", NcclRequest)
    @_tune_nccl.options
    @_tune_nccl._study.options
    def command(request, mix, output_format, output):
        found.append(_tune_nccl._tuned(request, mix, output_format, output))

    result = CliRunner().invoke(command, words)
    assert found, result.output
    return found[0], result.output


def test_a_better_setting_becomes_a_site_file(host, tmp_path):
    host.rate = noisy(1, lambda name, size, env: 1.05 if env.get("NCCL_MIN_CTAS") == "32" and size > 1 << 26 else 1.0)
    host.set = {"NCCL_NVLS_ENABLE": "0"}
    code, said = tune("--objective", "bandwidth", "--budget", "1d", "--sizes", "256MiB,1GiB")
    assert code == 0, said
    site = yaml.safe_load((tmp_path / "tuning-nccl.site.yml").read_text())
    *lines, stale = site["add"]
    assert {"NCCL_MIN_CTAS": "32"}.items() <= {each["nccl_conf"]: each["set"] for each in lines}.items()
    assert (stale["id"], stale["fact"]) == ("site-tuning-nccl-stale", "gpu.driver_version")
    saved = json.loads((tmp_path / "tuning-nccl.json").read_text())
    assert saved["provenance"]["set"] == {"NCCL_NVLS_ENABLE": "0"}
    assert not [each for each in saved["parameters"] if each["name"] == "NCCL_NVLS_ENABLE"]


def test_what_is_better_at_some_sizes_becomes_rows_of_the_plugin(host, tmp_path):
    def rate(name, size, env):
        many = env.get("NCCL_MIN_CTAS") == "64"
        limited = f"{name.replace('_', '')},46341,2097152,ring,24" in env.get("TUNER_ROWS", "")
        return 1.0 if not many or (size <= 1 << 20 and limited) else 1.15 if size > 1 << 20 else 0.9

    host.rate, host.about = noisy(2, rate), {"channels": 24}
    code, said = tune("--budget", "1d", "--plugin", "made")
    assert code == 0, said
    rows = (tmp_path / "made" / "nccl_tuner.csv").read_text().splitlines()
    assert rows[1:] == ["allgather,46341,2097152,ring,24,1,2", "allreduce,46341,2097152,ring,24,1,2"]
    site = yaml.safe_load((tmp_path / "tuning-nccl-plugin.site.yml").read_text())
    assert [(each["nccl_conf"], each["set"]) for each in site["add"] if "nccl_conf" in each] == [
        ("NCCL_MIN_CTAS", "64"),
        ("NCCL_TUNER_PLUGIN", "/etc/nodetune/libnodetune-tuner.so"),
    ]
    applied = [plan["measurements"][0]["options"] for plan in host.plans if "TUNER_ROWS" in str(plan)]
    assert all(each["apart"] and "ncclTunerPlugin_v5" in each["plugin"] for each in applied)
    assert len(applied) >= 6, "proven in the form in which it will be applied"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("NCCL_PXN_DISABLE",), "NCCL_PXN_DISABLE: only for: several nodes over RDMA"),
        (("NCCL_MIN_CTAS", "--objective", "latency"), "NCCL_MIN_CTAS: only for: everywhere except for latency"),
    ],
)
def test_a_parameter_that_cannot_be_tuned_here_is_told(host, words, told):
    code, said = tune("--parameter", *words)
    assert (code, "no settings to try on these hosts" in said) == (0, True)
    assert f"left unchanged: {told}" in said
    assert "not requested" not in said
    assert "trials: at most" not in said


def test_nothing_better_is_a_result_and_writes_no_plugin(host, tmp_path):
    host.rate = noisy(3, lambda name, size, env: 1.0)
    code, said = tune("--budget", "1d", "--plugin", "made")
    assert code == 0
    assert "nothing" in said
    assert not (tmp_path / "made").exists()
