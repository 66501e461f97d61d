"""What a watt and a unit of money buy, from the figures of GPUs and the site's price."""

import io
import json

import pytest

from nodetune.config import site
from nodetune.foundation.yaml_lines import FileError
from nodetune.report.text import verify
from nodetune.report.text.lines import console
from nodetune.verify import document, efficiency
from nodetune.verify.evaluate import judge
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records

SUSTAINED = records.record("gemm", "bf16_sustained", "GPU0", 650.0, unit="TFLOP/s", n=8192)
ENERGY = records.record("gpu_energy", "energy", "GPU0", 1.04, unit="J/TFLOP", better="lower", n=8192)
LOAD = records.record("gpu_load", "tflops", "GPU0", 630.0, unit="TFLOP/s", power_w=700.0)


def verdicts(*told):
    return judge(records.read(list(told)), {"gpu1": records.h200()})


def test_a_watt_is_counted_by_energy_else_by_the_power_under_load():
    assert efficiency.per_watt(verdicts(ENERGY, LOAD)) == {"GPU0": pytest.approx(1 / 1.04)}
    assert efficiency.per_watt(verdicts(LOAD, SUSTAINED)) == {"GPU0": pytest.approx(0.9)}
    without = {**LOAD, "about": {"power_w": None}}
    assert efficiency.per_watt(verdicts(without, SUSTAINED)) == {}


def test_money_buys_what_an_hour_computes_over_its_price():
    assert efficiency.per_price(verdicts(SUSTAINED, LOAD), 2.4) == {"GPU0": pytest.approx(650e12 * 3600 / 2.4 / 1e18)}
    assert efficiency.per_price(verdicts(LOAD), 2.4) == {}
    assert efficiency.per_price(verdicts(SUSTAINED), None) == {}


def test_report_and_document_have_both():
    found = HostVerification("gpu1", machine=records.h200(), verdicts=verdicts(SUSTAINED, ENERGY))
    stream, wanted = io.StringIO(), SuiteRequest("full")
    verify.Printer(console(stream), [found], wanted, "", gpu_hour=2.4).verify()
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
    assert "power 0.962 TFLOP/s a watt (bf16, sustained)" in lines
    assert "price 0.975 EFLOP for 1 of your currency, at 2.4 a GPU hour" in lines
    (host,) = document.document([found], wanted, "", 2.4)["hosts"]
    assert host["worth"] == {"tflops_per_watt": {"GPU0": 0.9615}, "eflop_per_price": {"GPU0": 0.975}}
    assert json.loads(json.dumps(host["worth"])) == host["worth"]


def test_the_last_site_file_with_a_price_wins(tmp_path):
    for name, text in (("a.yml", "gpu_hour: 2.40\n"), ("b.yml", "gpu_hour: 3\n"), ("c.yml", "checks: {}\n")):
        (tmp_path / name).write_text(text)
    assert site.read([tmp_path / "a.yml", tmp_path / "b.yml", tmp_path / "c.yml"]).gpu_hour == 3
    assert site.read([tmp_path / "a.yml"]).gpu_hour == 2.4
    assert site.read([tmp_path / "c.yml"]).gpu_hour is None


@pytest.mark.parametrize("price", ["0", "-1", "cheap"])
def test_a_price_that_is_not_one_is_refused(tmp_path, price):
    (tmp_path / "site.yml").write_text(f"gpu_hour: {price}\n")
    with pytest.raises(FileError, match="site.yml line 1: gpu_hour must be the price of one hour of one GPU"):
        site.read([tmp_path / "site.yml"])
