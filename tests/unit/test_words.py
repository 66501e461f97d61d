"""No retired word comes back: GLOSSARY.md has the vocabulary, RETIRED the words that it replaced."""

import ast
import re
from pathlib import Path

import pytest

from tests.support import pages

ROOT = Path(__file__).parents[2]
SOURCES = ("nodetune", "playbooks", "templates", "docs")
TEXTS = {".py", ".md", ".yml", ".j2", ".js", ".css", ".html", ".sh", ".txt", ".rules", ".conf"}
RETIRED = {
    "anew": "again",
    "at hand": "available",
    "beside": "along with, compared with",
    "blind": "inconclusive",
    "by hand": "manually",
    "census": "collector",
    "conversation": "live session",
    "desk": "workspace",
    "dialogue": "session",
    "factfile": "document",
    "fall short|falls short|fell short|falling short": "below target",
    "goes on": "continues",
    "hands": "executor",
    "hearsay": "report",
    "hook|hooks": "handler",
    "in vain": "without success",
    "keeper|keepers": "supervisor",
    "kin": "driver family",
    "lens|lenses": "resource",
    "lifeline|lifelines": "deadline",
    "meanings": "errors",
    "mend|mends|mended|mending": "fix",
    "of our own|of ours": "(delete)",
    "owed": "pending",
    "prover": "verify run",
    "rehearsal|rehearse|rehearses|rehearsed": "dry run",
    "sibling|siblings": "peers",
    "slurm install": "guard install",
    "so often": "number of repetitions",
    "srunstep": "slurm_step",
    "stand-in|stand-ins": "substitute",
    "stand in|stands in": "is in",
    "stray|strays": "leftover processes",
    "held against|hold against|holds against": "compared with",
    "took back|take back|takes back|taken back": "undo, roll back",
    "wave|waves": "batch",
    "what came of": "the result",
    "wholly": "completely",
    "workflow": "run",
}
"""Retired words (with their forms) → what to write instead."""

FOREIGN = (" thread siblings ", " core siblings ", " object hook ", " waves count ")
"""Names of the kernel, of Python and of cuBLASLt that look like retired words."""

KEPT = {
    "docs/reports.md": {"by hand"},
    "docs/scorecards.md": {"by hand"},
    "docs/tutorial.md": {"by hand"},
    "nodetune/report/sections/__init__.py": {"by hand"},
    "CHANGELOG.md": {"blind", "by hand", "hook|hooks", "slurm install", "sibling|siblings"},
    "docs/guard.md": {"blind", "stray|strays"},
    "nodetune/remediation/document.py": {"by hand", "rehearsal|rehearse|rehearses|rehearsed"},
    "nodetune/data/scorecards/settings.yml": {"beside", "sibling|siblings", "stray|strays"},  # ids of checks and items
    "nodetune/checks/fleet_comparisons.yml": {"sibling|siblings"},
    "nodetune/checks/network/link_speed_below_siblings.py": {"sibling|siblings"},
    "nodetune/checks/network/pause_beside_pfc.py": {"beside"},
    "nodetune/checks/rdma/rdma_rate_below_siblings.py": {"sibling|siblings"},
    "nodetune/remediation/plan_document.py": {"by hand"},
    "nodetune/guard/deploy/document.py": {"blind"},
    "nodetune/guard/deploy/policy.py": {"stray|strays"},
    "nodetune/guard/node/metrics.py": {"blind"},
    "nodetune/guard/node/policy.py": {"stray|strays"},
    "nodetune/guard/node/records.py": {"blind"},
    "nodetune/verify/model.py": {"sibling|siblings"},
    "templates/guard-entry.sh.j2": {"blind"},
    "tests/machines/test_apply.py": {"mend|mends|mended|mending"},
    "tests/machines/test_fleet.py": {"stand-in|stand-ins", "stand in|stands in"},
    "tests/machines/test_power_cuts.py": {"goes on"},
    "tests/machines/test_provision.py": {"took back|take back|takes back|taken back"},
    "tests/machines/test_pull_machines.py": {"goes on"},
    "tests/machines/test_resources.py": {"took back|take back|takes back|taken back"},
    "tests/machines/test_tuned_machine.py": {"of our own|of ours"},
    "nodetune/guard/deploy/kubernetes/chart.py": {"hook|hooks"},
    "playbooks/README.md": {"hook|hooks", "owed"},
    "playbooks/module_utils/nodetune_host/edits.py": {"hook|hooks"},
    "playbooks/module_utils/nodetune_host/journal.py": {"hook|hooks"},
    "playbooks/module_utils/nodetune_host/lines.py": {"hook|hooks"},
    "playbooks/module_utils/nodetune_host/pending.py": {"hook|hooks", "owed"},
    "playbooks/module_utils/nodetune_packages/ownfiles.py": {"anew"},
    "playbooks/engine/roles/driver/tasks/main.yml": {"anew"},
    "playbooks/engine/roles/persistenced/tasks/main.yml": {"anew"},
}
"""Places that name an old word because users meet it: renames, hooks of apt and Helm, and the names of checks (in waivers, policies
and alerts), of files, metrics, settings and of members of JSON documents, which stay, as do the names of benchmarks and of
tests on virtual machines, which a record has. Texts of files on hosts stay as well:
a new word there would rewrite the files at the next provision, rebuild the initial RAM disk and reload systemd.
"""


RETIRED_NAMES = {
    "_tell": "_report",
    "_told": "_describe",
    "answer|answers": "response, result",
    "apart": "separate, deviations, day_pairs",
    "carry_out": "execute",
    "found": "the thing's name",
    "look|looks|looked": "snapshot, examination",
    "tell|told": "report, words, evidence",
}
"""Names in code that were retired in the reviewed rooms → what to write instead."""

REVIEWED = ("nodetune/verify/find_slow", "nodetune/jobs/late_ranks", "nodetune/jobs/watch", "nodetune/tune")
NOT_REVIEWED = ("nodetune/tune/confirm.py",)

PARTS = re.compile("[A-Z]?[a-z]+|[A-Z]+")


def parts(text):
    """The words of a text in small letters: `LensError`, `lens_error` and a lens at the end of a line are all ` lens `."""
    spaced = f" {' '.join(PARTS.findall(text)).lower()} "
    for name in FOREIGN:
        spaced = spaced.replace(name, " ")
    return spaced


FORMS = {word: [parts(form) for form in word.split("|")] for word in RETIRED}


def words_in(text):
    spaced = parts(text)
    return {word for word, forms in FORMS.items() if any(form in spaced for form in forms)}


def files(root):
    yield from root.glob("*.md")
    for folder in SOURCES:
        yield from (path for path in (root / folder).rglob("*") if path.suffix in TEXTS)


def texts_of_tests(source):
    """The names of the tests in a file, and all of its docstrings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            strings = (each.value for each in node.body if isinstance(each, ast.Expr))
            yield from (
                each.value for each in strings if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def places(root):
    """The file and the word of every retired word, in names of files and in what they contain.

    Of tests, names and docstrings count.
    """
    found = set()
    for path in files(root):
        name = path.relative_to(root).as_posix()
        if path not in pages.GENERATED:  # their texts are those of files that are searched anyway
            found |= {(name, word) for word in words_in(f"{name}\n{path.read_text('utf-8')}")}
    for path in (root / "tests").rglob("*.py"):
        name = path.relative_to(root).as_posix()
        if not name.startswith("tests/data/") and path.name != Path(__file__).name:
            found |= {(name, word) for word in words_in("\n".join(texts_of_tests(path.read_text("utf-8"))))}
    return found


def kept():
    return {(name, word) for name, words in KEPT.items() for word in words}


@pytest.fixture(scope="module")
def found():
    return places(ROOT)


def test_no_retired_word_comes_back(found):
    new = sorted(found - kept())
    assert not new, "\n".join(f"{name}: {word!r} is retired: write {RETIRED[word]!r}" for name, word in new)


def test_a_kept_word_is_still_where_it_is_kept(found):
    assert kept() <= found


def names(source):
    """The functions, classes, parameters and variables that a file defines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def retired_names(source):
    return {name for name in names(source) if any(name in words.split("|") for words in RETIRED_NAMES)}


@pytest.mark.parametrize("room", REVIEWED)
def test_no_retired_name_comes_back_in_a_reviewed_room(room):
    for path in sorted((ROOT / room).glob("*.py")):
        if path.relative_to(ROOT).as_posix() not in NOT_REVIEWED:
            assert not retired_names(path.read_text("utf-8")), path


@pytest.mark.parametrize("text", ["found = 1", "def _told(): ...", "def read(answer): ...", "[look for look in ()]"])
def test_a_planted_retired_name_is_found(text):
    assert retired_names(text)


@pytest.mark.parametrize(
    "text",
    [
        "lens = read()",
        "def lens_named(): ...",
        "class LensError: ...",
        "class BadLens: ...",
        '"""Confirm it by hand."""',
        '"""Confirm it by\n    hand."""',
        "# confirm it by\n# hand",
        "What falls short is measured anew.",
    ],
)
def test_a_planted_retired_word_is_found(tmp_path, text):
    (tmp_path / "nodetune").mkdir()
    (tmp_path / "nodetune" / "planted.py").write_text(text)
    assert {name for name, _word in places(tmp_path)} == {"nodetune/planted.py"}


@pytest.mark.parametrize("text", ["def test_a_lens(): ...", 'def lens():\n    """A lens."""', 'A = 1\n"""A lens."""'])
def test_a_retired_word_in_a_test_is_found(tmp_path, text):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_planted.py").write_text(text)
    assert places(tmp_path) == {("tests/test_planted.py", "lens|lenses")}


def test_a_retired_word_in_the_name_of_a_file_is_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "keeper.md").write_text("")
    assert places(tmp_path) == {("docs/keeper.md", "keeper|keepers")}


@pytest.mark.parametrize("text", ["silence", "handsome", "thread_siblings_list", "a kind of kinship", "commend"])
def test_a_longer_word_is_not_a_retired_one(text):
    assert words_in(text) == set()
