"""The tuner plugin with damaged files, under the sanitizers: it answers as a second reader of its format, written here, does."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nodetune.tune.benches import nccl_tuner
from tests.support.pages import ROOT

SOURCE = Path(nccl_tuner.__file__).parents[2] / "data" / "tuner"
COUNT = 4000
RANKS, NODES, MAX_ROWS, MAX_BYTES = 8, 1, 256, 65536
SIZES = (0, 7, 1024, 65536, 1 << 20, (1 << 28) - 1, 1 << 33, (1 << 64) - 1)
COLLECTIVES = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHMS = ("tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat")
NUMBERS = (
    "-1",
    "0",
    "1",
    "7",
    "8",
    "64",
    "65",
    "1024",
    "1048576",
    "9223372036854775807",
    "9223372036854775808",
    "08",
    "1e3",
    "+1",
    "",
)
PIECES = (
    ",",
    "\n",
    "\r",
    "\t",
    " ",
    "#",
    "\0",
    "-1",
    "-",
    "9" * 30,
    "é",
    "\x7f",
    "allreduce",
    "tree",
    ",,,,,,,",
    "x" * 5000,
)
FOUND = {
    "nothing": "",
    "no end of the last line": "allreduce,0,-1,tree,-1,-1,-1",
    "lines of Windows": "allreduce,0,-1,tree,-1,-1,-1\r\n",
    "a zero byte ends nothing": "allreduce,0,-1,tree,-1,-1,-1\n\0\nallreduce,0,-1,auto,-1,-1,-1\n",
    "a zero byte in a row": "allreduce,0,-1,tree,-1,-1,-1\0x\n",
    "a return before a row": "\rallgather,0,7,collnetdirect,-1,1,8\n",
    "a return within a row": "allreduce,0,\r65,tree,7,64,8\n",
    "the largest number": "allreduce,9223372036854775807,-1,ring,64,1,8\n",
    "one more than the largest": "allreduce,0,9223372036854775808,ring,64,1,8\n",
    "commas only": "," * 60000,
    "rows up to the last byte": ("allreduce,0,8,tree,-1,1,4\n" * 3000)[:MAX_BYTES],
    "a byte too many": "#" * (MAX_BYTES + 1),
    "as many rows as fit": "allreduce,0,8,ring,2,1,8\n" * MAX_ROWS,
    "one row too many": "allreduce,0,8,ring,2,1,8\n" * (MAX_ROWS + 1),
}


def row(dice):
    words = [
        dice.choice(COLLECTIVES),
        *dice.choices(NUMBERS[:8], k=2),
        dice.choice(ALGORITHMS),
        *dice.choices(NUMBERS[:6], k=3),
    ]
    if dice.random() < 0.8:
        words[1:3] = [str(each) for each in sorted(dice.sample((0, 7, 1024, 1 << 20, 1 << 33), 2))]
        words[4:] = [
            dice.choice(("-1", "16")) if words[3] in ("tree", "ring") else "-1",
            *dice.choice((("1", "8"), ("-1", "-1"))),
        ]
    return ",".join(words)


def damaged(dice):
    """Return some rows, with nothing to three things wrong with them."""
    text = "".join(row(dice) + dice.choice(("\n", "\n", "\r\n", " \n")) for _ in range(dice.randrange(1, 6)))
    for _ in range(dice.choice((0, 0, 1, 1, 2, 3))):
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice((*PIECES, *NUMBERS)) + text[at + dice.choice((0, 0, 1, 3)) :]
    return text


def whole(word, *, any_):
    if any_ and word == "-1":
        return -1
    return int(word) if re.fullmatch("[0-9]+", word) and int(word) < 1 << 63 else None


def read(text):
    """Return the rows of a file, by the words of its header: one bad row and no row counts."""
    rows = []
    if len(text.encode("utf-8")) > MAX_BYTES or "\0" in text:
        return []
    for given in text.split("\n"):
        line = given.lstrip(" \t\r")
        if not line or line.startswith("#"):
            continue
        words = [word.lstrip(" \t").rstrip(" \t\r") for word in line.split(",")]
        if len(rows) == MAX_ROWS or len(words) != 7 or words[0] not in COLLECTIVES or words[3] not in ALGORITHMS:
            return []
        low, high = whole(words[1], any_=False), whole(words[2], any_=True)
        channels, nodes, ranks = (whole(word, any_=True) for word in words[4:])
        bad = None in (low, high, channels, nodes, ranks) or 0 in (channels, nodes, ranks) or channels > 64
        if bad or low > high >= 0 or (channels > 0 and words[3] not in ("tree", "ring")):
            return []
        if nodes in (-1, NODES) and ranks in (-1, RANKS):
            rows.append((words[0], low, high, ALGORITHMS.index(words[3]), max(channels, 0)))
    return rows


def answers(text):
    """Yield what NCCL hears for each collective and size, where it has seven algorithms, and where it has two."""
    rows = read(text)
    for collective in COLLECTIVES:
        for size in SIZES:
            found = next(
                (each for each in rows if each[0] == collective and each[1] <= size and not 0 <= each[2] < size), None
            )
            for algorithms in (7, 2):
                yield f"{found[3]}:{found[4]}" if found and found[3] < algorithms else "-"


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Return a function that asks the plugin, built with the sanitizers, about several files."""
    if not shutil.which("gcc"):
        pytest.skip("the plugin is built with gcc")
    folder = tmp_path_factory.mktemp("fuzzed")
    program = folder / "asks"
    sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    warned = ["-Wall", "-Wextra", "-Werror", f"-I{SOURCE}", ROOT / "tests/support/tuner_rows.c"]
    subprocess.run(["gcc", "-g", "-O1", *sanitized, *warned, "-o", program], check=True)

    def asked(texts):
        paths = [folder / str(number) for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(text.encode("utf-8"))
        given = "".join(f"{path}\n" for path in paths)
        done = subprocess.run([program, *map(str, SIZES)], input=given, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return [line.split() for line in done.stdout.splitlines()]

    return asked


@pytest.mark.full
def test_known_odd_files_are_read_as_their_header_says(ask):
    found = dict(zip(FOUND, ask(list(FOUND.values())), strict=True))
    assert found == {name: list(answers(text)) for name, text in FOUND.items()}
    assert {"-"} != set(found["as many rows as fit"])
    assert {"-"} == set(found["one row too many"]) == set(found["a zero byte ends nothing"])


@pytest.mark.full
def test_damaged_files_are_refused_whole_or_read_right(ask):
    dice = random.Random(34)
    texts = [damaged(dice) for _ in range(COUNT)]
    found = ask(texts)
    wanted = [list(answers(text)) for text in texts]
    assert [text for text, one, other in zip(texts, found, wanted, strict=True) if one != other] == []
    assert COUNT / 10 < sum({"-"} != set(each) for each in found) < COUNT * 9 / 10
