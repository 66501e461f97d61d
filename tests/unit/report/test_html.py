"""The HTML page works from disk in a real browser: found by search and keyboard, safe from what hosts say, quiet."""

import base64
import hashlib
import io
import json
import os
import re
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodetune.foundation import UserError, json_document
from nodetune.report.html import data as page_data
from nodetune.report.html import page as html_page
from nodetune.report.html import previous
from nodetune.report.sections import CommandOptions
from tests.support import commandline
from tests.support.reporting import CHECKS, HOSTILE, finding, fixable, hostile, judged, result

MACHINES = sorted((Path(__file__).parents[2] / "data" / "synthetic").glob("*.json"))
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60
"""Seconds: the machine may be busy."""

in_browser = [
    pytest.mark.xdist_group("chromium"),
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="no browser: apt install chromium chromium-driver"),
]


def written(results, before=None, asked="-i prod", measured=None, judged=""):
    stream = io.StringIO()
    commands = CommandOptions(asked, saved="--facts" in asked)
    html_page.write(results, stream, CHECKS, commands, before, measured, judged)
    return stream.getvalue()


def data_of(page):
    return json.loads(previous.DATA.search(page.encode("utf-8", "backslashreplace"))[1])


def fleet(count):
    """Every tenth host has a high finding, every third a low one, and one was not reached."""
    for number in range(1, count):
        high = [finding("nvlink-down", "high", observed="GPU3: link 4 down")] if number % 10 == 0 else []
        low = [fixable(observed=f"{number % 7} GiB")] if number % 3 == 0 else []
        yield result(f"gpu{number:04}", *high, *low, finding("edac-missing", status="pass"))
    yield result("gpu9999", state="refused", message="port 22: connection refused")


class Page:
    """A page that was written to disk, open in a browser."""

    def __init__(self, driver, folder):
        self.driver, self._folder = driver, folder

    def open(self, results, before=None, width=1280, scheme="light", fragment="", **about):
        path = self._folder / "page.html"
        path.write_text(written(results, before, **about), "utf-8", "backslashreplace")
        device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
        scheme = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get("about:blank")
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(f"file://{path}{fragment}")
        return self

    def run(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def text(self, selector="main"):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", selector)

    def widths(self):
        return self.run("return [innerWidth, document.documentElement.scrollWidth]")

    def colours(self, *names):
        code = (
            "const style = getComputedStyle(document.documentElement); return Object.fromEntries("
            "arguments[0].map((name) => [name, style.getPropertyValue('--' + name).trim()]))"
        )
        return self.run(code, names)

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def until(self, code, *arguments):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, PATIENCE).until(lambda _: self.run(code, *arguments))

    def requests(self):
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        sent = [each["params"] for each in events if each["method"] == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in sent]


@contextmanager
def browser(profile):
    """A Chromium that keeps what it has in the folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(DRIVER))
    found.set_page_load_timeout(PATIENCE)
    found.set_script_timeout(5 * PATIENCE)
    try:
        yield found
    finally:
        found.quit()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(driver, tmp_path):
    return Page(driver, tmp_path)


@pytest.mark.slow
class TestInABrowser:
    pytestmark = in_browser

    def test_the_overview_says_how_the_fleet_is(self, page):
        page.open(list(fleet(100)))
        assert page.text("h1") == "9 of 100 hosts have critical or high findings"
        assert "99 hosts audited" in page.text()
        assert "1 not reached" in page.text()
        bar = [" ".join(each.split()) for each in page.texts(".distribution li")]
        assert bar == ["H high 9", "\u00d7 not reached 1", "L low 30", "✓ nothing found 60"]

    def test_search_narrows_to_hosts_and_findings(self, page):
        page.open(list(fleet(100)))
        page.keys("/", "0042")
        page.until("return location.hash === '#/search/0042'")
        assert page.texts("main tbody a") == ["gpu0042"]
        page.keys("\ue003" * 4, "link 4")
        page.until("return location.hash === '#/search/link%204'")
        assert page.texts("main tbody a") == ["nvlink-down"]
        assert "1 finding and 0 hosts" in page.run("return document.getElementById('status').textContent"), "told aloud"

    def test_the_keyboard_alone_reaches_a_host_and_comes_back(self, page):
        page.open(list(fleet(100)))
        page.keys("/", "0050")
        page.until("return location.hash === '#/search/0050'")
        for _ in range(20):
            page.keys("\ue004")
            if page.run("return document.activeElement.innerText") == "gpu0050":
                break
        assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid", "focus is seen"
        page.keys("\ue007")
        page.until("return location.hash === '#/host/gpu0050'")
        assert page.text("h1") == "gpu0050"
        assert page.run("return document.activeElement.tagName") == "H1", "a reader of screens begins at the top"
        assert "GPU3: link 4 down" in page.text()
        page.run("history.back()")
        page.until("return document.querySelector('h1').innerText === 'Search'")

    def test_the_map_is_walked_by_arrow_keys_and_tells_each_host(self, page):
        page.open(list(fleet(100)))
        page.run("document.querySelector('canvas').focus()")
        page.keys("\ue014" * 9)
        assert page.text(".told") == "gpu0010: high, 1 finding"
        page.keys("\ue007")
        page.until("return location.hash === '#/host/gpu0010'")

    def test_a_finding_teaches_and_says_what_to_type(self, page):
        page.open(list(fleet(100)), fragment="#/check/dirty-limit-high")
        heads = page.texts("h2")
        assert heads[:3] == ["Why it matters", "What was seen", "Put it right"]
        assert {"Confirm manually", "Sources"} <= set(heads)
        assert "nodetune plan -i prod -s dirty-limit-high" in page.text()
        assert all(
            each.startswith("https://")
            for each in page.run("return [...document.querySelectorAll('a[target]')].map((a) => a.href)")
        )

    def test_the_commands_select_what_the_finding_reports_too(self, page):
        part = finding("dirty-background-limit-high", "low", part_of="dirty-limit-high")
        page.open([result("gpu1", fixable(), part)], fragment="#/check/dirty-limit-high")
        for verb in ("plan", "apply"):
            assert f"nodetune {verb} -i prod -s dirty-limit-high -s dirty-background-limit-high" in page.text()

    def test_saved_facts_are_not_applied_to(self, page):
        page.open([result("gpu1", fixable())], fragment="#/check/dirty-limit-high", asked="--facts facts/")
        assert "nodetune plan --facts facts/ -s dirty-limit-high" in page.text()
        assert "nodetune apply" not in page.text()

    def test_an_explanation_is_of_the_same_profile(self, page):
        page.open([result("gpu1", finding("fan-failed"))], fragment="#/check/fan-failed", judged="--site s.yml")
        assert "nodetune explain fan-failed --site s.yml" in page.text()

    def test_a_short_value_is_not_cut_within_its_word_on_a_telephone(self, page):
        fails = [finding(observed=f"all 8: GPU0-{each}: disabled", wanted="enabled") for each in range(2)]
        hosts = [result(f"workstation-4x4090-{each}", found) for each, found in enumerate(fails)]
        page.open(hosts, width=375, fragment="#/check/swap-on")
        assert page.texts("td.value")[1::2] == ["enabled"] * 2
        lines = page.run(
            "return [...document.querySelectorAll('td.value')].map((cell) => { const range = document.createRange();"
            "range.selectNodeContents(cell.firstChild); return range.getClientRects().length })"
        )
        assert lines[1::2] == [1, 1]

    def test_filters_narrow_and_stay_in_the_address(self, page):
        page.open(list(fleet(100)), fragment="#/findings?level=4")
        assert page.texts("main tbody .id") == ["nvlink-down"]
        page.open(list(fleet(100)), fragment="#/hosts?level=-2")
        assert page.texts("main tbody a") == ["gpu9999"]

    def test_nothing_that_a_host_says_runs_or_becomes_an_element(self, page):
        pages = ["#/", "#/findings", "#/hosts", "#/check/swap-on", "#/search/a"]
        pages += [
            f"#/host/{name}"
            for name in page.open(hostile()).run("return hosts.map((host) => encodeURIComponent(host.key))")
        ]
        for fragment in pages:
            page.open(hostile(), fragment=fragment)
            assert "taken" not in page.run("return document.title").replace("document.title='taken'", "")
            assert page.run("return document.querySelectorAll('main img, main script, main b > *').length") == 0
            assert not page.run("return [...document.links].some((a) => !/^(file|https):/.test(a.href))")
            assert page.driver.get_log("browser") == []
        assert HOSTILE[0] in page.run("return hosts.map((host) => host.name)"), "shown as it is"

    def test_nothing_leaves_the_file_and_the_console_is_quiet(self, page):
        page.open(list(fleet(100)))
        for fragment in (
            "#/findings",
            "#/hosts",
            "#/check/nvlink-down",
            "#/host/gpu0010",
            "#/search/gpu",
            "#/nowhere",
            "#/host/%zz",
        ):
            page.run("location.hash = arguments[0]", fragment)
            page.until("return document.querySelector('h1') !== null")
        assert [each for each in page.requests() if not each.startswith(("file:///", "data:"))] == []
        assert page.driver.get_log("browser") == []

    def test_its_own_policy_forbids_the_network(self, page):
        page.open(list(fleet(5)))
        code = "const done = arguments[0]; fetch('https://example.invalid/').then(() => done('sent'), () => done('refused'))"
        assert page.driver.execute_async_script(code) == "refused"
        assert "violates the following Content Security Policy" in str(page.driver.get_log("browser"))
        assert not any("example.invalid" in each for each in page.requests())

    @pytest.mark.parametrize(
        "fragment",
        [
            "#/",
            "#/findings",
            "#/hosts",
            "#/check/nvlink-down",
            "#/host/gpu0030",
            "#/host/hgx-h200-untuned",
            "#/search/gpu",
        ],
    )
    def test_a_telephone_shows_every_page_without_scrolling_sideways(self, page, fragment):
        page.open([*judged(*MACHINES), *fleet(60)], width=375, fragment=fragment)
        assert page.widths() == [375, 375]

    def test_a_phone_shows_a_host_page_with_every_severity(self, page):
        severities = ("critical", "high", "medium", "low", "info")
        page.open([result("gpu001", *(finding(f"check-{each}", each) for each in severities))], width=320)
        assert page.widths() == [320, 320]
        assert [each.split() for each in page.texts(".lead .named")] == [
            [each[0].upper(), each, "1", each] for each in severities
        ]

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_every_text_stands_out_from_what_is_behind_it(self, page, scheme):
        page.open(list(fleet(100)), scheme=scheme)
        levels = [f"{kind}{level}" for kind in ("level", "on") for level in range(6)]
        colours = page.colours("paper", "raised", "ink", "quiet", "link", *levels)
        assert (luminance(colours["paper"]) > 0.5) == (scheme == "light")
        pairs = [(ink, paper) for ink in ("ink", "quiet", "link") for paper in ("paper", "raised")]
        pairs += [(f"on{level}", f"level{level}") for level in range(6)]
        assert {
            pair: contrast(*(colours[name] for name in pair))
            for pair in pairs
            if contrast(*(colours[name] for name in pair)) < 4.5
        } == {}

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_severities_catch_the_eye_in_their_order(self, page, scheme):
        page.open([result("gpu001", finding())], scheme=scheme)
        colours = page.colours("paper", "level3", "level4", "level5")
        medium, high, critical = (contrast(colours[f"level{level}"], colours["paper"]) for level in (3, 4, 5))
        assert medium < high < critical
        if scheme == "dark":  # there brighter may be paler, and pale is calm
            assert vividness(colours["level5"]) >= vividness(colours["level4"])

    def test_a_manual_fix_is_told_though_another_host_is_unknown(self, page):
        unknown = result("gpu1", finding("fan-failed", status="unknown", reason="no sensor"))
        page.open([unknown, result("gpu2", finding("fan-failed", manual="Replace it."))], fragment="#/host/gpu2")
        assert "Replace it." not in page.text(), "folded"
        page.run("document.querySelector('.line summary').click()")
        assert "Replace it." in page.text()

    def test_what_could_not_be_judged_is_listed_in_parts(self, page):
        unknown = [finding(f"check-{number}", status="unknown", reason=f"no {number}") for number in range(60)]
        page.open([result("gpu1", *unknown)])
        assert len(page.texts("main li")) == 25
        page.run("document.querySelector('main .more > button').click()")
        assert len(page.texts("main li")) == 50

    def test_checks_that_lack_the_same_are_one_line(self, page):
        page.open([result("gpu1", *(finding(f"check-{n}", status="unknown", reason="needs root") for n in range(9)))])
        assert [each.split() for each in page.texts("main .plain:not(.columns) > li")] == [
            ["needs", "root", "9", "checks"]
        ]
        page.run("document.querySelector('.inline summary').click()")
        assert len(page.texts(".columns > li")) == 9

    def test_what_changed_since_the_last_audit_is_marked(self, page):
        then = [result("a", finding()), result("b"), result("lost")]
        before = previous._of_page(data_of(written([*then, result("c", finding("swap-on", status="pass"))])))
        now = [result("a", finding(status="pass")), result("b"), result("c", finding()), result("added")]
        page.open(now, before)
        told = " ".join(page.text(".changes").split())
        assert re.search(
            r"New H high swap-on c Gone H high swap-on a Hosts added added Hosts no longer audited lost", told
        ), told

    def test_on_paper_the_overview_brings_the_findings_along(self, page):
        page.open(list(fleet(30)))
        page.run("window.dispatchEvent(new Event('beforeprint'))")
        assert page.run("return document.querySelectorAll('.leaf').length") == 2
        page.run("window.dispatchEvent(new Event('afterprint'))")
        assert page.run("return document.querySelectorAll('.leaf').length") == 0
        paper = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
        assert paper.startswith(b"%PDF")

    def test_host_names_are_folded(self, page):
        page.open(list(fleet(5)))
        cases = {
            "gpu[001-003]": ["gpu001", "gpu002", "gpu003"],
            "gpu[098-100]": ["gpu098", "gpu099", "gpu100"],
            "n[1-2,4]": ["n1", "n2", "n4"],
            "n[8-12]": ["n8", "n9", "n10", "n11", "n12"],
            "a, b7.x": ["b7.x", "a"],
        }
        assert {wanted: page.run("return fold(arguments[0])", names) for wanted, names in cases.items()} == {
            each: each for each in cases
        }


def luminance(colour):
    """https://www.w3.org/TR/WCAG22/#dfn-relative-luminance"""
    digits = colour.lstrip("#")
    digits = "".join(2 * each for each in digits) if len(digits) == 3 else digits
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def vividness(colour):
    """How far a colour is from grey: its strongest part less its weakest."""
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return max(parts) - min(parts)


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_the_content_policy_allows_only_its_script_and_style():
    page = written(fleet(5))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "http" not in re.sub(r"https://[\w./?=&%#:@~+-]+", "", "".join(re.findall(r"(?:src|href)=\"[^\"]*\"", page)))


def test_data_cannot_leave_its_element():
    page = written(hostile())
    assert page.count("<script") == page.count("</script>") == 2
    assert {host[0] for host in data_of(page)["hosts"]} >= {HOSTILE[0], HOSTILE[1]}


def test_findings_and_texts_are_held_once():
    data = data_of(written(fleet(2000)))
    assert len(data["hosts"]) == 2000
    assert len(data["findings"]) < 10
    assert len(data["texts"]) == len(set(data["texts"])) < 40


def test_all_that_an_audit_found_is_in_the_page():
    found = list(judged(*MACHINES))
    assert len(found) == len(MACHINES) > 1
    for each in found:
        data = data_of(written([each]))
        names = [check["id"] for check in data["checks"]]
        (host,) = data["hosts"]
        told = {names[data["findings"][number][0]] for number in host[6]}
        skipped = {names[check] for check, _ in data["skipped"][host[5]]}
        assert told == {found.check for found in each.findings if found.status in page_data.TOLD and not found.part_of}
        assert skipped == {found.check for found in each.findings if found.status == "skip"}
        assert [names[check] for check in data["judged"][host[4]]] == [found.check for found in each.findings]


def test_an_earlier_audit_is_the_same_from_json_and_page(tmp_path):
    from nodetune.audit import document as audit

    results = [*judged(*MACHINES), result("gone", state="refused")]
    (tmp_path / "a.json").write_text(json_document.text(audit.audit(results)))
    (tmp_path / "a.html").write_text(written(results))
    one, other = (previous.read(tmp_path / name) for name in ("a.json", "a.html"))
    assert one.hosts == other.hosts
    assert len(one.hosts) == len(MACHINES)
    assert [one.change(each) for each in results] == [previous.FindingChange()] * len(results)


def test_what_is_unknown_now_or_before_is_no_change():
    before = previous.PreviousAudit(0, {"a": (frozenset({"x", "y"}), frozenset({"x"}))})
    assert before.change(result("a", finding("x", status="unknown"), finding("new-check"))) == previous.FindingChange()
    assert before.change(result("a", state="refused")) == previous.FindingChange()
    assert before.change(result("b", finding("x"))) == previous.FindingChange(added=True)
    changed = before.change(result("a", finding("x", status="waived"), finding("y")))
    assert changed == previous.FindingChange(("y",), (("x", "waived"),))


def test_the_audit_before_may_come_through_a_pipe(tmp_path):
    from nodetune.audit import document as audit

    text = json.dumps(audit.audit([result("a", finding("swap-on"))]))  # in another layout than ours
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,), daemon=True)
    writer.start()
    assert previous.read(tmp_path / "pipe").hosts == {"a": (frozenset({"swap-on"}), frozenset({"swap-on"}))}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"schema": "nodetune.plan/1"}',
        '{"page": 1}',
        "<html>",
        '{"schema": "nodetune.audit/1", "time": 1, "hosts": 3}',
    ],
)
def test_a_file_that_is_no_audit_is_refused_by_its_name(content, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"other\.json"):
        previous.read(path)
    with pytest.raises(FileNotFoundError, match="missing.html"):
        previous.read(tmp_path / "missing.html")


def nodetune(*arguments):
    return commandline.nodetune("audit", "--facts", MACHINES[0], *arguments)


@pytest.mark.parametrize(
    ("output_format", "begins"),
    [
        ("html", "<!doctype html>"),
        ("junit", "<?xml"),
        ("markdown", "# nodetune audit"),
        ("prometheus", "# HELP nodetune_audit_"),
    ],
)
def test_every_audit_format_has_the_same_exit_code(output_format, begins, tmp_path):
    done = nodetune("--format", output_format, "-o", tmp_path / "report", "--fail-on", "critical")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("1 host audited: 1 critical, 2 high, 1 info findings")
    assert (tmp_path / "report").read_text().startswith(begins)


def test_the_command_line_compares_a_page_with_an_earlier_one(tmp_path):
    first, second = tmp_path / "first.html", tmp_path / "second.html"
    nodetune("--format", "html", "-o", first)
    done = nodetune("--format", "html", "-o", second, "--previous", first, "--fail-on", "never")
    assert (done.returncode, "written to" in done.stderr) == (0, True)
    assert data_of(second.read_text())["since"] == {"time": data_of(first.read_text())["time"], "lost": []}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "text", "--previous", __file__], "--previous needs --format html"),
        (["--format", "html", "--previous", __file__], "test_html.py: not JSON"),
    ],
)
def test_a_bad_earlier_audit_is_a_usage_error_in_one_line(options, message):
    done = nodetune(*options)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
