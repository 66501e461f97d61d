"""The first words about a tuning."""

import io
import json
import random
import re
from pathlib import Path

from benchmarks import tuning_errors
from benchmarks.tuning_errors import Simulated
from nodetune.report.text.tuning import print_tuning
from nodetune.tune import document, study
from nodetune.tune.headline import headline, resolved
from nodetune.tune.model import Parameter
from tests.support.commandline import nodetune

RECORDED = Path(__file__).parents[2] / "data/recordings/tuning/nccl-h100-x2.json"
"""Two H100s: +27 % stood under "nothing beats the default"."""


def tuned(effect):
    bench = Simulated(random.Random(2), effect, parameters=(Parameter("CHANNELS", (24, 8), "simulated"),))
    return document.document(bench, study.tune(bench, 3000), 3000.0)


def test_a_refused_gain_is_told_first_with_what_settles_it():
    shown = nodetune("tune", "show", RECORDED, env={"COLUMNS": "500"})
    first, settle, *_ = shown.stdout.splitlines()
    assert first == (
        "nothing accepted: NCCL_BUFFSIZE=2097152 NCCL_MIN_CTAS=64: +18.5 %, but these may be worse (interval of 99 %): "
        "all_reduce 64 KiB -33.3 to +13.2 %, all_gather 64 KiB -26.7 to +45.8 %, "
        "all_reduce 1 MiB -24.0 to +19.9 %, all_gather 1 MiB -35.4 to +63.3 %"
    )
    assert settle == (
        "to settle it: the same command with --parameter NCCL_BUFFSIZE --parameter NCCL_MIN_CTAS "
        "--save tuning-nccl-2.json, on a drained host with steady CPU clocks; or compare the step time of your job "
        "with and without NCCL_BUFFSIZE=2097152 NCCL_MIN_CTAS=64"
    )


def test_the_page_has_the_same_first_words(tmp_path):
    nodetune("tune", "show", RECORDED, "-o", tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    assert "nothing accepted</h1>" in page
    assert "<p>To settle it: the same command with --parameter NCCL_BUFFSIZE" in page


def test_a_sure_loss_leaves_nothing_to_settle():
    told = headline(tuned(lambda setting, case: (0.06 if case.objective else -0.08) * bool(setting)))
    assert told.state == "nothing accepted"
    found = re.search(r", but these are worse \(interval of 99 %\): all_reduce 16 MiB (-\S+) to (-\S+) %", told.reason)
    assert found, told.reason
    assert float(found.group(1)) < -8 < float(found.group(2))
    assert told.settle == ""


def test_a_gain_that_is_noise_stays_nothing_better():
    found = json.loads(RECORDED.read_text())
    for each in found["confirmations"]:
        each |= {"gain": 0.002, "p": 0.3, "refused": "the gain of 0.2 % is not more than noise (p = 0.300)"}
    assert headline(found).state == "nothing better"
    assert headline(found).reason == found["reason"][:599] + "…"


def test_what_a_screening_without_finalists_resolves_is_told(tmp_path):
    world = "recorded, the default against itself"
    outcome = tuning_errors.tuned(world, 1)
    assert (outcome.state, outcome.confirmations) == (study.NOTHING, ())
    found = document.document(tuning_errors.WORLDS[world](random.Random(1)), outcome, 40.0)
    (tmp_path / "t.json").write_text(json.dumps(found))
    assert re.match(r"all_reduce 64 KiB ±\d\.\d %, all_gather 64 KiB ±", resolved(document.read(tmp_path / "t.json")))
    out = io.StringIO()
    print_tuning(out, found)
    assert "differences seen from: all_reduce 64 KiB ±" in out.getvalue()
