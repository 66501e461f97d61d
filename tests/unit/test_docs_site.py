"""The documentation as a site: it is built without a warning, whole, and needs nothing from elsewhere."""

import functools
import http.server
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import threading
from html import unescape
from pathlib import Path

import pytest

from nodetune import checks

ROOT = Path(__file__).parents[2]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PATIENCE = 60
"""Seconds: the machine may be busy."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def read(page):
    return page.read_text("utf-8")


def test_every_documentation_file_has_a_page_and_is_linked(site):
    start = read(site / "index.html")
    pages = [page.stem for page in (ROOT / "docs").glob("*.md")]
    assert {"index", "apply", "cli"} <= set(pages)
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


def test_commands_and_addresses_stand_on_the_page_as_they_are_typed(site):
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
    found = json.loads(read(site / "search" / "search_index.json"))["docs"]
    assert {check.id for check in checks.load_all()} <= {each["title"] for each in found}


@pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no browser")
def test_searching_for_a_check_leads_to_it(site, tmp_path):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    handler = functools.partial(Quiet, directory=str(site))
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path}"):
        options.add_argument(flag)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        try:
            browser.get(f"http://127.0.0.1:{server.server_port}/search.html?q=memlock-limited")
            WebDriverWait(browser, PATIENCE).until(
                lambda page: "checks/limits.html#memlock-limited" in page.page_source, "no such result"
            )
        finally:
            browser.quit()
            server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_words):
        pass
