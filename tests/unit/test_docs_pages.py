"""The pages of the documentation hold together: messages exist, exit codes are told in one place, samples are real."""

import re

import pytest

from tests.support import commandline
from tests.support.pages import DOCS, ROOT, WRITTEN
from tests.support.states import STATES

ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
SOURCES = [path.read_text("utf-8") for folder in ("nodetune", "playbooks") for path in (ROOT / folder).rglob("*.py")]


def quoted():
    return ROW.findall((DOCS / "troubleshooting.md").read_text("utf-8"))


@pytest.mark.parametrize("message", quoted())
def test_messages_on_the_troubleshooting_page_exist_in_nodetune(message):
    parts = [part for piece in message.split("…") if (part := piece.strip(" ()")).strip(":;,")]
    assert any(all(part in text for part in parts) for text in SOURCES)


def test_every_reason_for_an_unreached_host_is_explained():
    assert set(STATES) <= set(quoted())


def test_exit_codes_are_on_one_page_that_others_link_to():
    naming = {page.name for page in WRITTEN if re.search(r"exit code", page.read_text("utf-8"), re.IGNORECASE)}
    linking = {page.name for page in WRITTEN if "exit-codes.md" in page.read_text("utf-8")} | {"exit-codes.md"}
    assert naming - linking - {"guard.md", "pull.md", "reports.md", "testing-fleet.md"} == set()
    assert len(linking) > 8


def test_the_way_of_one_setting_is_at_most_forty_files_that_exist():
    section = (
        (DOCS / "project" / "architecture.md")
        .read_text("utf-8")
        .split("## One setting through the code")[1]
        .split("\n## ")[0]
    )
    files = []
    for name in re.findall(r"`([\w/]+\.[\w.]+)`", section.split("| --- | --- |")[1]):
        files.append(ROOT / name if "/" in name else files[-1].parent / name)
    assert [str(file) for file in files if not file.is_file()] == []
    assert len(set(files)) == len(files)
    assert 30 <= len(files) <= 40


def samples():
    """Each command of a sample with output, and the lines that it shows."""
    fence = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
    for text in fence.findall((DOCS / "tutorial.md").read_text("utf-8")):
        command, *shown = text.splitlines()
        yield command.removeprefix("$ nodetune ").split(), [line for line in shown if line != "..."]


@pytest.mark.parametrize(("words", "shown"), samples(), ids=lambda value: " ".join(value)[:40])
def test_what_the_tutorial_shows_is_what_nodetune_prints(words, shown, tmp_path):
    site = re.search(r"```yaml\n(.*?)```", (DOCS / "tutorial.md").read_text("utf-8"), re.DOTALL)[1]
    (tmp_path / "site.yml").write_text(site)
    done = commandline.nodetune(*words, cwd=tmp_path, env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert done.returncode in (0, 1, 3)  # 3: the recording lacks facts of newer checks
    printed = done.stdout.splitlines()
    assert [line for line in shown if line and line not in printed] == []
