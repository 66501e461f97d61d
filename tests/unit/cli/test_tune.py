"""`nodetune tune` from the command line, with simulated hosts for a subject."""

import json
import os
import random
import signal
import statistics
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from benchmarks.tuning_errors import Simulated, gains, is_best
from nodetune.cli import options, requests
from nodetune.cli.commands._tune import _study
from nodetune.cli.main import group
from nodetune.foundation import UserError, paths
from nodetune.history.history import History
from nodetune.report.html import tuning
from nodetune.tune import run as tune_run
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.model import Trial
from tests.support.commandline import nodetune

SCHEMA = json.loads(paths.bundled("data/schemas").joinpath("tuning.json").read_text())


class Nccl(Simulated):
    def proposal(self, setting):
        added = (
            {"id": f"site-{name.lower()}", "nccl_conf": f"NCCL_{name}", "accept": value, "set": value}
            for name, value in setting
        )
        return {"add": list(added)}

    def provenance(self):
        return {"nccl": "2.28.3", "driver": ["580.159.04"], "hosts": ["gpu001"]}


def tune(*words, world=None, after=None):
    """Run it; `after`: Ctrl-C in the trial of that number."""
    made = world or Nccl(random.Random(1), gains(0.05))
    if after:
        measure, count = made.measure, iter(range(1, 10_000))

        def stopped(setting, cases):
            if next(count) == after:
                os.kill(os.getpid(), signal.SIGINT)
            return measure(setting, cases)

        made.measure = stopped

    codes = []

    @requests.command("nccl", NcclRequest)
    @options.hosts_or_nodes
    @_study.options
    def command(request, output_format, output):
        codes.append(_study.run(request.study, "nccl", lambda: made, request.connection, output_format, output))

    result = CliRunner().invoke(command, words)
    return codes[0] if codes else None, result


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_accepted_tuning_saves_a_site_file_and_the_next_step():
    code, result = tune()
    assert code == 0, result.output
    assert result.stdout.startswith("accepted: ")
    found = json.loads(Path("tuning-nccl.json").read_text())
    jsonschema.validate(found, SCHEMA)
    assert is_best(tuple(found["setting"].items()))
    site = yaml.safe_load(Path("tuning-nccl.site.yml").read_text())
    assert {"id": "site-channels", "nccl_conf": "NCCL_CHANNELS", "accept": 24, "set": 24} in site["add"]
    assert "nodetune plan --site tuning-nccl.site.yml" in result.stderr
    assert not Path("tuning-nccl.json.trials").exists()


def test_the_history_keeps_the_figures_of_the_default_and_the_tuned():
    _, result = tune("--history", "fleet.db", "--format", "json")
    found = json.loads(result.stdout)
    runs = [each["values"]["all_reduce 1 GiB"] for each in found["trials"] if not each["setting"]]
    with History("fleet.db", make=False) as history:
        assert history.hosts() == ["gpu001"]
        leaves = [f"tune.nccl.all_reduce 1 GiB/{name}" for name in ("default", "tuned")]
        before, after = ([each.high for each in points] for _, points in history.series_of("gpu001", leaves))
    assert before == [round(1000 * statistics.median(runs))]
    assert after > before


@pytest.mark.parametrize("chosen", ["json", "html"])
def test_the_site_file_is_written_whatever_is_printed(chosen):
    code, result = tune("--format", chosen)
    assert code == 0
    assert "proposal: tuning-nccl.site.yml" in result.stderr
    assert yaml.safe_load(Path("tuning-nccl.site.yml").read_text())["add"]


def test_the_next_command_names_the_same_hosts():
    _, result = tune("-i", "gpu001,gpu002", "-l", "gpu001", "-b")
    assert "nodetune plan -i gpu001,gpu002 -l gpu001 -b --site tuning-nccl.site.yml  " in result.stderr


def test_a_proposal_becomes_a_site_file_again_and_a_plan():
    tune()
    shown = nodetune("tune", "show", "tuning-nccl.json", "--format", "site", "-o", "again.yml")
    assert shown.returncode == 0, shown.stderr
    assert Path("again.yml").read_text() == Path("tuning-nccl.site.yml").read_text()
    planned = nodetune("plan", "--facts", "h200-x4", "--site", "again.yml", "-s", "site-channels")
    assert "not set → 24 " in planned.stdout, planned.stdout + planned.stderr
    assert "  writes    /etc/nccl.conf\n" in planned.stdout


def test_without_a_proposal_there_is_no_site_file():
    tune(world=Nccl(random.Random(2)))
    shown = nodetune("tune", "show", "tuning-nccl.json", "--format", "site")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == "nodetune: nothing better: no proposal for a site file\n"


def test_an_audit_says_that_a_new_driver_makes_a_tuning_stale():
    tune()
    recorded = paths.bundled("facts/recorded") / "h200-x4.json"
    newer = json.loads(recorded.read_text())
    newer["facts"]["gpu.driver_version"] = {"value": "590.48.01"}
    Path("newer.json").write_text(json.dumps(newer))
    words = ("audit", "--site", "tuning-nccl.site.yml", "-s", "site-tuning-nccl-stale", "--fail-on", "info")
    same, other = (nodetune(*words, "--facts", each) for each in ("h200-x4", "newer.json"))
    assert (same.returncode, other.returncode) == (0, 1), (same.stdout, other.stdout)
    assert "The tuning of nccl is for another driver" in other.stdout
    assert "do       Tune again (nodetune tune nccl) and replace the proposal" in other.stdout


def test_nothing_better_is_a_result_with_exit_0():
    code, result = tune(world=Nccl(random.Random(2)))
    assert code == 0
    assert result.stdout.startswith("nothing better: nothing beats the default")
    found = json.loads(Path("tuning-nccl.json").read_text())
    jsonschema.validate(found, SCHEMA)
    assert (found["setting"], found["proposal"]) == ({}, {})
    assert not Path("tuning-nccl.site.yml").exists()


def test_progress_tells_programs_of_each_stage():
    code, result = tune("--progress", "json")
    events = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    for each in events:
        jsonschema.validate(each, json.loads(paths.bundled("data/schemas").joinpath("progress.json").read_text()))
    assert code == 0
    assert [(each["event"], each["phase"]) for each in events] == [
        (event, "tune") for event in ("started", "stage", "stage", "host", "finished")
    ]
    assert [each["stage"] for each in events if each["event"] == "stage"] == ["screening", "confirmation"]


def test_ctrl_c_keeps_the_trials_and_resume_continues():
    code, result = tune(after=12)
    assert code == 130, result.output
    assert "no result yet: 11 trials kept in tuning-nccl.json.trials: use --resume to continue" in result.stderr
    assert not Path("tuning-nccl.json").exists()
    assert len(Path("tuning-nccl.json.trials").read_text().splitlines()) == 12
    with_resume = tune("--resume")
    assert with_resume[0] == 0
    assert len(json.loads(Path("tuning-nccl.json").read_text())["trials"]) > 11


class Breaks(Nccl):
    """A host that can no longer measure its default after some seconds."""

    until = 60.0

    def measure(self, setting, cases):
        trial = super().measure(setting, cases)
        broken = setting == () and self.clock > self.until
        return Trial(setting, failed="gpu001: connection lost", seconds=4.0) if broken else trial


def test_a_host_that_breaks_is_exit_3_and_its_trials_are_kept():
    world = Breaks(random.Random(1), gains(0.05))
    code, result = tune(world=world)
    assert code == 3
    _, *told = result.stderr.splitlines()
    assert told[0] == "nodetune: the default could not be measured: gpu001: connection lost"
    assert told[1].startswith("no result yet: ") and told[1].endswith(": use --resume to continue")
    assert tune("--resume")[0] == 0


def test_where_nothing_can_be_improved_no_file_is_left(here):
    world = Nccl(random.Random(1))
    world.cases = [replace(case, objective=False) for case in world.cases]
    code, result = tune(world=world)
    assert (code, list(here.iterdir())) == (3, [])
    _, told = result.stderr.splitlines()
    assert told == "nodetune: the objective could not be measured: nodetune verify says why"


def test_before_it_begins_it_says_how_long_it_may_take(monkeypatch):
    clock = iter(float(each) for each in range(0, 10_000, 10))
    monkeypatch.setattr(tune_run.time, "monotonic", lambda: next(clock))
    _, result = tune("--budget", "2m")
    assert "18 settings to try, up to 120 trials: at most about 20 min, longer than --budget (2 min)" in result.stderr
    _, result = tune("--budget", "1h", "--save", "b.json")
    assert "at most about 20 min\n" in result.stderr


def test_too_little_time_is_exit_3():
    code, result = tune("--budget", "30s")
    assert (code, result.stdout.split(":")[0]) == (3, "too little time")
    assert Path("tuning-nccl.json.trials").exists()


@pytest.mark.parametrize(
    ("there", "words", "told"),
    [
        ("tuning-nccl.json", (), "tuning-nccl.json: exists: move it away, or give another file with --save"),
        ("tuning-nccl.json.trials", (), "use --resume to continue it, or delete the file"),
        ("", ("--resume",), "nothing to resume; remove --resume"),
        ("a.json", ("--save", "a.json"), "a.json: exists"),
        ("a.site.yml", ("--save", "a.json"), "a.site.yml: exists: move it away"),
    ],
)
def test_no_result_is_ever_overwritten(there, words, told):
    if there:
        Path(there).write_text("mine")
    code, result = tune(*words)
    assert code is None
    assert isinstance(result.exception, UserError)
    assert told in str(result.exception)
    assert not there or Path(there).read_text() == "mine"


def test_an_accepted_result_is_shown_as_text_page_and_json():
    tune()
    text = nodetune("tune", "show", "tuning-nccl.json")
    assert (text.returncode, text.stdout.split(":")[0]) == (0, "accepted")
    assert "all_reduce 64 KiB (watched)" in text.stdout
    page = nodetune("tune", "show", "tuning-nccl.json", "-o", "t.html")
    assert page.returncode == 0
    drawn = Path("t.html").read_text()
    assert drawn.count("<circle") == 6
    assert "<script" not in drawn
    data = json.loads(nodetune("tune", "show", "tuning-nccl.json", "--format", "json").stdout)
    jsonschema.validate(data, SCHEMA)


@pytest.mark.parametrize("gain", [0.001, 0.05, -0.4])
def test_the_picture_fits_a_page_of_any_width(gain):
    """Places are shares of the width: on a phone, an interval in pixels was beyond the edge."""
    cases = [
        {"id": "a", "gain": gain, "interval": (gain - 0.002, gain + 0.01)},
        {"id": "b", "gain": 0, "interval": (-1e-3, 1e-3)},
    ]
    for row in tuning.picture(cases)["rows"]:
        low, at, high = (float(row[name].removesuffix("%")) for name in ("low", "at", "high"))
        assert 2 < low < at < high < 98
    assert tuning.picture(cases)["rows"][1]["at"] == "50.0%"


def test_a_variable_that_nccl_never_read_is_told_with_the_result():
    class Deaf(Nccl):
        def measure(self, setting, cases):
            unread = [name for name, _ in setting if name == "CHANNELS"]
            return replace(super().measure(setting, cases), about={"unread": unread})

    _, result = tune(world=Deaf(random.Random(1), gains(0.05)))
    assert "unread: NCCL's log never names CHANNELS with this value" in result.stdout
    _, result = tune("--save", "b.json", world=Nccl(random.Random(1), gains(0.05)))
    assert "unread" not in result.stdout


def test_what_a_host_says_is_no_markup_on_the_page():
    world = Nccl(random.Random(1), banned=is_best)
    world.provenance = lambda: {"nccl": "<script>alert(1)</script>", "hosts": ["gpu001"]}
    tune(world=world)
    result = CliRunner().invoke(group, ["tune", "show", "tuning-nccl.json", "-o", "t.html"])
    assert result.exit_code == 0, result.output
    drawn = Path("t.html").read_text()
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "not JSON"),
        ('{"schema": "nodetune.verify/1"}', "not a nodetune.tuning/1 document"),
        ('{"schema": "nodetune.tuning/1", "state": 3}', "x.json: damaged: "),
        pytest.param("[" * 100_000 + "]" * 100_000, "not JSON", id="deep"),
    ],
)
def test_a_file_that_is_no_tuning_is_one_line(content, told):
    Path("x.json").write_text(content)
    done = nodetune("tune", "show", "x.json")
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
