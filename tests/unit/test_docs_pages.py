"""The pages of the documentation hold together: messages, links, options and numbers are right, and readers get few words."""

import re

import click
import pytest
import yaml

from nodetune import checks
from nodetune.cli import main
from nodetune.facts.saved import BUNDLED
from nodetune.pytest_plugin.options import FLAGS, OPTIONS, SEVERAL
from nodetune.verify import catalogue
from tests.support import commandline
from tests.support.pages import DOCS, EVERY, READERS, ROOT, WRITTEN, name, prose
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
    for found in re.findall(r"`([\w/]+\.[\w.]+)`", section.split("| --- | --- |")[1]):
        files.append(ROOT / found if "/" in found else files[-1].parent / found)
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


MAX_WORDS = 25_000
"""For readers: the README and the pages that people write, without those about the project (docs/project) and generated ones."""


def test_readers_get_at_most_25_000_words():
    words = {name(page): len(page.read_text("utf-8").split()) for page in READERS}
    assert "README.md" in words
    assert sum(words.values()) <= MAX_WORDS, sorted(words.items(), key=lambda each: -each[1])


def entries(nav):
    """Yield (title, content) of every entry of a navigation, groups first."""
    for title, content in (pair for entry in nav for pair in entry.items()):
        yield title, content
        if isinstance(content, list):
            yield from entries(content)


def test_the_navigation_has_short_titles_in_short_groups():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    every = list(entries(nav))
    assert [title for title, _ in every if len(title) > 24] == []
    assert [title for title, content in every if isinstance(content, list) and len(content) > 6] == []
    listed = [content for _, content in every if isinstance(content, str)]
    assert {page.relative_to(DOCS).as_posix() for page in WRITTEN if DOCS in page.parents} <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("machine", sorted(path.stem for path in BUNDLED.glob("*.json")))
def test_a_bundled_machine_is_on_a_page(machine):
    assert [page.name for page in READERS if f"`{machine}`" in page.read_text("utf-8")]


def test_the_pages_of_checks_are_one_for_each_area():
    assert {page.stem for page in DOCS.glob("checks/*.md")} == {check.area for check in checks.load_all()}


LINKED = [*EVERY, *ROOT.glob("[CG]*.md"), *ROOT.glob("playbooks/**/*.md")]
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]*))?\)")
HEAD = re.compile(r"^#+ (.*)", re.MULTILINE)


def anchors(page):
    heads = HEAD.findall(re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL))
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_a_link_leads_to_a_file_and_its_heading(page):
    for path, anchor in LINK.findall(page.read_text("utf-8")):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def test_a_page_that_the_code_names_exists():
    named = {
        found for text in SOURCES for found in re.findall(r"(?<![/\w])docs/[\w/-]+\.(?:md|yml)\b(?:#[\w-]+)?", text)
    }
    assert len(named) > 3
    lost = [each for each in named if not (ROOT / each.partition("#")[0]).is_file()]
    lost += [
        each for each in named if "#" in each and each.partition("#")[2] not in anchors(ROOT / each.partition("#")[0])
    ]
    assert lost == []


COUNTED = {
    "checks": lambda: len(checks.catalogue()),
    "measurements": lambda: len(catalogue.measurements()),
    "areas": lambda: len({check.area for check in checks.load_all()}),
    "recorded machines": lambda: len([*ROOT.glob("tests/data/corpus/*.json")]),
}
"""What there is many of → how many there are now."""


def stale_counts(text):
    """Each number of all checks (or others of COUNTED) in a text that is not today's. Up to 20, it is not of all."""
    for number, what in re.findall(rf"\b(\d[\d,]*) ({'|'.join(COUNTED)})\b", text):
        if int(number.replace(",", "")) > 20 and int(number.replace(",", "")) != COUNTED[what]():
            yield f"{number} {what}"


@pytest.mark.parametrize("page", [page for page in EVERY if page.name != "comparison.md"], ids=name)
def test_a_page_counts_what_there_is_today(page):
    assert [*stale_counts(page.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "text", ["each of 260 checks", "1,000 checks", "with 99 measurements", "121 recorded machines"]
)
def test_a_count_that_grew_old_is_found(text):
    assert [*stale_counts(text)]


def test_a_few_checks_and_the_right_number_pass():
    assert not [*stale_counts(f"8 checks of {len(checks.catalogue())} checks")]


FOREIGN = {
    "--ansible-inventory", "--hosts", "--sudo", "--ssh-config", "--ssh-identity-file",  # testinfra
    "--collect-only", "--junitxml", "--option",  # pytest
    "--exclusive", "--no-requeue",  # Slurm
    "--collector.textfile.directory", "--host", "--list", "--tags",  # node-exporter, ansible-inventory, ansible-playbook
}  # fmt: skip
"""Options of other programs that pages for readers name."""


def options(command=main.group, above=None):
    """Every option of a command and of those below it."""
    context = click.Context(command, parent=above)
    found = {word for option in command.params for word in (*option.opts, *option.secondary_opts) if not hidden(option)}
    below = command.list_commands(context) if isinstance(command, click.Group) else ()
    return found.union({"--help"}, *(options(command.get_command(context, each), context) for each in below))


def hidden(option):
    return getattr(option, "hidden", False)


def named_options(page):
    """The long options in the text of a page, outside of its samples."""
    codes = (code for code in re.findall(r"`([^`]+)`", prose(page)) if not code.startswith("python "))
    return {word for code in codes for word in re.findall(r"(?<![\w-])--[a-z][\w.-]*[a-z]", code)}


def test_options_that_pages_name_exist():
    plugin = {"--nodetune", *(f"--nodetune-{each}" for each in (*OPTIONS, *SEVERAL, *FLAGS))}
    known = options() | plugin
    named = {word: name(page) for page in READERS for word in named_options(page)}
    assert {word: page for word, page in named.items() if word not in known | FOREIGN} == {}
    assert len(named) > 60
    assert named.keys() >= FOREIGN
