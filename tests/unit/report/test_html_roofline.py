"""The roofline of a host's GPUs on its page: figures of two real H100s."""

import json

import pytest

from nodetune.report.html import measured as measured_page
from nodetune.verify.evaluate import judge
from nodetune.verify.run import HostVerification
from tests.support import verify_records as records
from tests.unit.report.test_html import Page, browser, in_browser
from tests.unit.report.test_html_measured import audited, document

RECORDED = records.HERE / "data/recordings/verify/h100-x2.jsonl"


def measured(folder, without=()):
    lines = map(json.loads, RECORDED.read_text().splitlines())
    figures = records.read([each for each in lines if each["metric"] not in without], "h100-x2")
    machine = records.h200("h100-x2")
    proof = HostVerification("h100-x2", machine=machine, verdicts=tuple(judge(figures, {"h100-x2": machine})))
    path = folder / "verify.json"
    path.write_text(json.dumps(document([proof])))
    return measured_page.read([path])


def test_the_page_has_the_operations_per_byte_of_each_product(tmp_path):
    data = measured(tmp_path).document()
    (host,) = data["hosts"]
    slots = [data["slots"][slot] for slot in data["shapes"][host[3]]]
    found = {data["kinds"][kind]["metric"]: intensity for kind, *_, intensity in slots if intensity}
    recorded = {
        each["metric"]: each["about"]["intensity"]
        for each in map(json.loads, RECORDED.read_text().splitlines())
        if "intensity" in each["about"]
    }
    assert found == pytest.approx(recorded, rel=1e-4)
    assert found["decode_1"] == pytest.approx(1, abs=0.01)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.slow
class TestInABrowser:
    pytestmark = in_browser

    @pytest.fixture(params=[(1280, "light"), (420, "dark")])
    def page(self, request, driver, tmp_path):
        width, scheme = request.param
        its = Page(driver, tmp_path)
        return its.open(audited("h100-x2"), measured=measured(tmp_path), width=width, scheme=scheme)

    def test_roofs_ridge_and_products_are_drawn_and_told(self, page):
        told = page.run("return document.querySelector('.roofline svg').getAttribute('aria-label')")
        assert told.startswith(
            "Roofline. Median of 2 GPUs: memory 3,043 GB/s, L2 cache 7,335 GB/s, fp8 1,559 TFLOP/s, "
        )
        assert "bf16 835.5 TFLOP/s" in told
        assert told.endswith("below 274.6 operations per byte the memory bounds work, above it the tensor cores.")
        titles = page.run("return [...document.querySelectorAll('.roofline title')].map((each) => each.textContent)")
        assert {each.partition(":")[0] for each in titles} == {
            *(f"decode_{tokens}" for tokens in (1, 8, 32, 64, 128, 256)),
            *("prefill", "even", "odd"),
        }
        assert len(page.run("return [...document.querySelectorAll('.roofline .roof line')]")) == 8

    def test_the_plot_stays_on_the_page(self, page):
        inner, wanted = page.widths()
        assert wanted <= inner
        code = (
            "const box = document.querySelector('.roofline svg').getBoundingClientRect(); "
            "return [...document.querySelectorAll('.roofline circle, .roofline line')].every((each) => {"
            "const its = each.getBoundingClientRect(); return its.left >= box.left - 1 && its.right <= box.right + 1 "
            "&& its.top >= box.top - 1 && its.bottom <= box.bottom + 1})"
        )
        assert page.run(code)

    def test_without_the_speed_of_memory_there_is_no_roofline(self, driver, tmp_path):
        page = Page(driver, tmp_path).open(audited("h100-x2"), measured=measured(tmp_path, without=("hbm_read",)))
        assert page.run("return document.querySelector('.roofline')") is None
        assert page.texts("h2").count("Measurements") == 1

    def test_the_overview_keeps_measurements_apart_from_sections(self, driver, tmp_path):
        page = Page(driver, tmp_path).open(audited("h100-x2", "other"), measured=measured(tmp_path))
        gap = "const line = document.querySelector('.measuredline'); return parseFloat(getComputedStyle(line).marginBottom)"
        assert page.run(gap) >= 24
