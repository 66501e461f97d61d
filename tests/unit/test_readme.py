"""The README and the pictures of the pages: one screen that says for whom, and pictures of what is printed today."""

import re
from html import unescape

import pytest

from tests.support.pages import DOCS, EVERY, ROOT, name

README = (ROOT / "README.md").read_text("utf-8")
SHOWN = [(page, path) for page in EVERY for path in re.findall(r"!\[[^\]]+\]\(([^)#\s]+)\)", page.read_text("utf-8"))]


def test_the_readme_is_one_screen_that_says_for_whom_it_is():
    assert len(README.splitlines()) <= 75
    assert re.search(r"^\*\*nodetune .+ NVIDIA GPU servers on Linux\*\*", README, re.MULTILINE)


@pytest.mark.parametrize(("page", "path"), SHOWN, ids=lambda value: getattr(value, "name", value))
def test_a_picture_exists_is_small_and_loads_nothing(page, path):
    picture = page.parent / path
    assert picture.stat().st_size < 200_000
    if picture.suffix == ".svg":
        text = picture.read_text("utf-8")
        assert not re.search(r"url\((?!#)|<image|<script|@import", text)


def test_every_picture_is_shown_on_a_page():
    shown = {(page.parent / path).resolve() for page, path in SHOWN}
    assert set(DOCS.glob("pictures/*")) == shown


def test_the_readme_shows_a_report_with_its_commands():
    drawing = (DOCS / "pictures" / "audit.svg").read_text("utf-8")
    text = unescape(re.sub(r"<style>.*?</style>|<[^>]+>", "", drawing, flags=re.DOTALL)).replace("\xa0", " ")
    assert "nodetune audit --facts gpu042.json" in text
    assert "gpu-recovery-needed" in text


def test_no_page_takes_nodetune_from_an_index_that_lacks_it():
    assert [
        name(page) for page in EVERY if re.search(r"(pip|pipx) install [^#\n]*(?<=\s)nodetune(?=\s)", page.read_text())
    ] == []
