"""The documentation as a site: it is built without a warning, whole, and needs nothing from elsewhere."""

import functools
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from html import unescape

import pytest

from nodetune import checks
from tests.support.pages import DOCS, ROOT
from tests.unit.report.test_html import PATIENCE, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="mkdocs-material is not installed"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def read(page):
    return page.read_text("utf-8")


def test_every_documentation_file_has_a_page_and_is_linked(site):
    start = read(site / "index.html")
    pages = [page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")]
    assert {"index", "apply", "cli", "checks/gpu", "project/coverage"} <= set(pages)
    assert [page for page in pages if not (site / f"{page}.html").exists()] == []
    assert [page for page in pages if f'href="{page}.html' not in start] in ([], ["index"])


def test_every_check_is_explained_on_the_page_of_its_area(site):
    pages = {page.stem: read(page) for page in (site / "checks").glob("*.html")}
    overview = read(site / "checks.html")
    assert len(pages) > 10
    for check in checks.load_all():
        assert pages[check.area].count(f'<h2 id="{check.id}">') == 1
        assert f'href="checks/{check.area}.html#{check.id}"' in overview
        assert unescape(pages[check.area]).count(check.title) >= 1


def test_commands_and_addresses_appear_as_they_are_typed(site):
    text = unescape(re.sub(r"<[^>]+>", "", read(site / "checks" / "gpu.html")))
    assert "nvidia-smi --query-gpu=index,accounting.mode --format=csv" in text
    assert "\\" not in text.partition("gpu-accounting-off")[2].partition("gpu-applications-clock-low")[0]
    address = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html"
    assert f'<a href="{address}">{address}</a>' in read(site / "checks" / "gpu.html")


def test_no_page_loads_anything_from_elsewhere(site):
    pages, sheets = list(site.rglob("*.html")), list(site.rglob("*.css"))
    assert len(pages) > 20
    assert sheets
    for page in pages:
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]+)"|<link[^>]*\shref="([^"]+)"', read(page))
        assert loaded
        assert not [each for pair in loaded for each in pair if re.match(r"(https?:)?//", each)], page
    for sheet in sheets:
        assert not re.search(r"url\([\"']?(https?:)?//", read(sheet)), sheet


def test_the_program_that_writes_pages_is_not_on_the_site(site):
    assert not (site / "generate.py").exists()


def test_every_check_is_found_by_the_search_index(site):
    found = json.loads(read(site / "search" / "search_index.js").removeprefix("var __index = "))["docs"]
    assert {check.id for check in checks.load_all()} <= {each["title"] for each in found}


in_browser = pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no browser")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def server(site):
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def wait(driver, condition, message):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, PATIENCE).until(condition, message)


@in_browser
@pytest.mark.parametrize("place", ["disk", "server"])
def test_searching_for_a_check_leads_to_it(site, server, driver, place):
    root = f"file://{site}" if place == "disk" else server
    driver.get(f"{root}/index.html?q=numa-balancing-on")
    links = "return [...document.querySelectorAll('.md-search-result__link')].map((link) => link.href).filter((address) => address.includes('#'))"
    wait(driver, lambda page: page.execute_script(links), "no result")
    found = driver.execute_script(links)[0]
    assert re.sub(r"\?[^#]*", "", found) == f"{root}/checks/numa.html#numa-balancing-on"


@in_browser
@pytest.mark.parametrize(("scheme", "theme"), [("dark", "slate"), ("light", "default")])
def test_the_site_is_dark_where_the_system_is(site, driver, scheme, theme):
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    driver.get(f"file://{site}/index.html")
    assert driver.find_element("tag name", "body").get_attribute("data-md-color-scheme") == theme


@in_browser
def test_a_search_takes_plain_words_and_says_if_nothing_fits(site, driver):
    driver.get(f"file://{site}/index.html?q=zzqx:~*")
    box = "return document.querySelector('.md-search-result__meta').innerText"
    wait(driver, lambda page: page.execute_script(box).strip() == "No matching documents", "it hangs")


@in_browser
@pytest.mark.full
def test_no_table_is_cut_off_and_no_page_exceeds_a_phone(site, driver):
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    for width, cut in ((1280, True), (390, False)):
        device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
        for page in pages:
            driver.get(f"file://{page}")
            wide = "return document.documentElement.scrollWidth <= innerWidth"
            tables = (
                "return [...document.querySelectorAll('.md-content table')].filter((table) =>"
                "table.scrollWidth > table.closest('.md-content__inner').clientWidth).map((table) => table.innerText)"
            )
            assert driver.execute_script(wide), (width, page)
            assert not cut or driver.execute_script(tables) == [], (width, page)
    sent = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in sent if each["method"] == "Network.requestWillBeSent"]
    assert f"file://{site}/index.html" in asked
    assert [address for address in asked if re.match(r"https?://(?!127\.0\.0\.1:)", address)] == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_words):
        pass
