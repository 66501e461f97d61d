"""The page of a host leads to what to do: an index, one line a cause, commands to copy. It works for everyone."""

import pytest
from selenium_axe_python import Axe

from nodetune.api.device import Device
from nodetune.api.model import HostResult
from nodetune.report import sections
from tests.support.reporting import finding, fixable, judged, result
from tests.unit.report.test_html import MACHINES, Page, browser, fleet, in_browser

UNTUNED = next(each for each in MACHINES if each.stem == "hgx-h200-untuned")
GPU = Device("GPU3", "0000:61:00.0", "GPU-5c2f9a4e-0000-1111-2222-0123456789ab", "1654922003815")
LINES = "return [...document.querySelectorAll('.line summary')].map((each) => each.querySelector('.id').textContent)"

pytestmark = [pytest.mark.slow, *in_browser]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(driver, tmp_path):
    return Page(driver, tmp_path)


def faults():
    """Findings of every section, one of low severity."""
    repair = finding("nvlink-down", "critical", observed="GPU3: link 4 down", repair=True)
    return [
        repair,
        finding("gpu-xid-hardware", part_of="nvlink-down"),
        fixable("numa-balancing-on", "medium"),
        finding("raid-degraded", "high", manual="mdadm /dev/mdX --add it"),
        fixable(),
        finding("edac-missing", "high", status="unknown", reason="needs root"),
    ]


def untuned():
    return judged(UNTUNED)


def test_findings_are_ordered_by_who_acts_and_lesser_fold(page):
    page.open([result("gpu1", *faults())])
    assert page.texts(".acts h2, .lesser h2") == [
        "Broken: take it out of service 1 +1",
        "Apply can fix, nothing is interrupted 1",
        "Manual work 1",
        "Unknown: could not be read 1",
        "Low and info 1",
    ]
    assert page.run(LINES) == ["nvlink-down +1", "numa-balancing-on", "raid-degraded", "dirty-limit-high"]
    assert not page.run("return document.querySelector('.lesser').open")


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_the_page_has_the_sections_of_the_text_report(page, path):
    results = judged(path)
    page.open(results)
    report = sections.build(results, sections.CommandOptions("-i prod"))
    told = page.run(
        "return [...document.querySelectorAll('.acts')].map((each) => [each.querySelector('h2').firstChild.textContent,"
        "each.querySelector('.todo code').textContent,"
        "[...each.querySelectorAll('.line .id')].map((id) => id.firstChild.textContent)])"
    )
    assert [(title, command) for title, command, _ in told] == [
        (each.title.capitalize(), each.command) for each in report.sections
    ]
    for (*_, ids), each in zip(told, report.sections, strict=True):
        assert sorted(set(ids)) == sorted({line.check for line in each.lines if each.name != sections.UNKNOWN})
    assert len(page.texts(".lesser .line")) == report.lesser


@pytest.mark.parametrize(
    ("entry", "address", "lines"),
    [
        ("Manual work 1", "#/?who=by-hand", ["raid-degraded"]),
        ("Low and info 1", "#/?who=lesser", ["dirty-limit-high"]),
        ("C critical 1", "#/?level=5", ["nvlink-down +1"]),
        ("L low 1", "#/?level=2", ["dirty-limit-high"]),
        ("memory 1", "#/?area=memory", ["dirty-limit-high"]),
    ],
)
def test_the_index_narrows_by_who_severity_and_area(page, entry, address, lines):
    page.open([result("gpu1", *faults())])
    found = page.run(
        "const [link] = [...document.querySelectorAll('.index a')].filter((each) =>"
        "each.innerText.split(/\\s+/).join(' ').replace(/^(.) \\w+ (?=critical|low)/, '$1 ') === arguments[0]);"
        "link.focus(); link.click(); return link.id",
        entry,
    )
    page.until("return location.hash === arguments[0]", address)
    page.until("return document.querySelector('.index [aria-current]').id === arguments[0]", found)
    assert page.run(LINES) == lines
    assert page.run("return document.activeElement.id") == found, "the keyboard stays where it was"
    assert page.run("return document.getElementById('status').textContent") == "1 finding", "told aloud"
    assert page.run("return [...document.querySelectorAll('.line')].every((each) => each.checkVisibility())")


def test_a_line_opens_by_keyboard_to_what_it_means(page):
    page.open([result("gpu1", *faults())])
    page.run("document.querySelector('.line summary').focus()")
    assert "Why" not in page.text(".line")
    page.keys("\ue007")
    page.until("return document.querySelector('.line').open")
    told = page.text(".line")
    for part in ("Swap is on.", "Observed", "GPU3: link 4 down", "Why", "Confirm"):
        assert part in told


def test_every_command_of_a_host_is_for_that_host(page):
    page.open([result("gpu1", *faults()), result("gpu2")], fragment="#/host/gpu1")
    assert page.texts(".todo code") == [
        "nodetune plan -i prod -l gpu1",
        "nodetune explain -i prod --section broken -l gpu1",
        "nodetune apply -i prod -l gpu1",
        "nodetune explain -i prod --section by-hand -l gpu1",
        "nodetune explain -i prod --section unknown -l gpu1",
        "nodetune audit -i prod -l gpu1",
    ]
    page.open([result("gpu1; reboot", *faults()), result("gpu2")], fragment="#/host/gpu1%3B%20reboot")
    assert page.texts(".todo code") == [], "a shell would change it"


def test_a_command_is_copied_whole_by_its_button(page):
    page.open([result("gpu1", *faults())])
    page.driver.find_element("css selector", ".todo .copy").click()
    page.until("return document.getElementById('status').textContent === 'Copied'")
    page.driver.find_element("id", "search").send_keys("\ue009v")
    page.until("return document.getElementById('search').value === 'nodetune plan -i prod'")


@pytest.mark.parametrize("width", [320, 1280, 1920])
def test_no_command_breaks_within_a_word_that_fits(page, width):
    page.open(untuned(), width=width, asked="--facts hgx-h200-untuned.json")
    page.run("for (const each of document.querySelectorAll('details')) each.open = true")
    broken = page.run(
        "const lines = (word) => { const range = document.createRange(); range.selectNodeContents(word);"
        "return new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size };"
        "return [...document.querySelectorAll('main .word')].filter((word) => lines(word) > 1 &&"
        "word.getBoundingClientRect().width < word.closest('p, dd, td, summary > span, li').clientWidth - 1).map((word) => word.innerText)"
    )
    assert broken == []
    words = page.texts(".todo .word")
    assert {"hgx-h200-untuned.json", "--max-disruption", "new-sessions"} <= set(words)
    window, content = page.widths()
    assert content <= window == width


def test_a_wide_screen_is_used_and_the_page_is_short(page):
    page.open(untuned(), width=1920)
    rights = page.run(
        "return [...document.querySelectorAll('.line .title')].map((each) => each.getBoundingClientRect().left)"
    )
    assert rights
    assert min(rights) > 960
    assert page.run("return document.documentElement.scrollHeight") < 4000


@pytest.mark.parametrize("words", ["GPU3", "61:00.0", "gpu-5c2f9a4e-0000-1111-2222-0123456789ab", "1654922003815"])
def test_a_gpu_is_found_by_each_of_its_names(page, words):
    other = Device("GPU30", "0000:62:00.0", "GPU-aaaa", "7")
    hosts = [
        HostResult(name, "ok", findings=(finding(),), devices=its) for name, its in [("a", (other,)), ("b", (GPU,))]
    ]
    page.open(hosts)
    page.keys("/", words)
    page.until("return document.querySelector('table[aria-label=Devices]') !== null")
    row = page.text("table[aria-label=Devices] tbody tr").split()
    assert row == ["GPU3", "b", "0000:61:00.0", GPU.uuid, GPU.serial], "a whole name comes first"
    assert "1 device" in page.text(".count") or words == "GPU3"


def test_the_name_of_a_host_alone_lists_no_devices(page):
    page.open([HostResult("node7", "ok", findings=(finding(),), devices=(GPU,)), result("node8")])
    page.keys("/", "node7")
    page.until("return document.querySelector('.count') !== null")
    assert "device" not in page.text(".count")
    page.keys(" gpu3")
    page.until("return /1 device/.test(document.querySelector('.count').textContent)")


def test_checks_that_most_could_not_judge_are_one_column(page):
    many = ["dcgm-not-running", "nvlink-down", "edac-missing", "mtu-differs"]
    unknown = [finding(each, status="unknown", reason="needs root") for each in many]
    one = finding("raid-degraded", status="unknown", reason="too long")
    page.open([result("a", *unknown), result("b", *unknown, one), result("c", finding("nvlink-down", status="pass"))])
    assert page.texts(".matrix thead th")[-1] == "4 checks that most could not judge"
    marks = page.run(
        "return [...document.querySelectorAll('.matrix tbody tr')].map((row) =>"
        "[row.cells[0].innerText, [...row.querySelectorAll('.mark')].map((each) => each.textContent).join('')])"
    )
    assert {name: signs.count("?") for name, signs in marks} == {"a": 1, "b": 2, "c": 0}


def test_every_coloured_square_has_a_letter(page):
    severities = ("critical", "high", "medium", "low", "info")
    page.open([result(f"n{place:02}", finding(severity=severities[place % 5])) for place in range(30)])
    signs = page.run("return [...document.querySelectorAll('.mark, .spread span')].map((each) => each.textContent)")
    assert set(signs) == {"C", "H", "M", "L", "I"}
    drawn = page.run(
        "const canvas = document.querySelector('canvas'), pen = canvas.getContext('2d');"
        "return [0, 1, 2, 3, 4].map((place) => { const {data} = pen.getImageData(place * 24, 0, 22, 22), found = new Set();"
        "for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) found.add([...data.slice(at, at + 3)].join());"
        "return found.size })"
    )
    assert min(drawn) > 2, "a square, and a letter in it with its soft edges"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "fragment",
    ["#/", "#/findings", "#/hosts", "#/check/nvlink-down", "#/host/hgx-h200-untuned", "#/host/gpu9999", "#/search/gpu"],
)
def test_axe_finds_no_fault_on_any_page(page, fragment, scheme):
    page.open([*untuned(), *fleet(30)], scheme=scheme, fragment=fragment)
    page.run("for (const each of document.querySelectorAll('details')) each.open = true")
    axe = Axe(page.driver)
    axe.inject()
    found = axe.run()
    assert found["passes"]
    told = [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found["violations"]]
    assert told == []
