"""The samples of the documentation are real: files are accepted, commands exist, output is what nodetune prints."""

import os
import re
import shlex
import subprocess
import sys
import textwrap

import click
import pytest
import yaml

from nodetune.cli import main
from nodetune.provision import lock
from tests.support.pages import DOCS, ROOT, WRITTEN, prose

sys.path.insert(0, str(DOCS))
import samples as page_samples

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
ENVIRONMENT = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def samples(page, *languages):
    found = FENCE.findall(page.read_text("utf-8"))
    return [textwrap.dedent(text) for _, language, text in found if language in languages]


def nodetune(*words, cwd=ROOT):
    done = subprocess.run(
        [sys.executable, "-m", "nodetune", *words], env=ENVIRONMENT, cwd=cwd, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def yaml_samples():
    return [
        pytest.param(page, text, id=f"{page.stem}-{number}")
        for page in WRITTEN
        for number, text in enumerate(samples(page, "yaml"))
    ]


def is_site_file(text):
    return bool(set(yaml.safe_load(text)) & {"checks", "waivers", "add", "provision"})


@pytest.mark.parametrize(("page", "text"), [each for each in yaml_samples() if is_site_file(each.values[1])])
def test_a_site_file_in_the_docs_is_valid(page, text, tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "cuda.asc").write_text("-----BEGIN PGP PUBLIC KEY BLOCK-----")
    (tmp_path / "site.yml").write_text(text)
    assert nodetune("profile", "validate", "site.yml", cwd=tmp_path)[::2] == (0, "")


def test_site_files_md_has_a_sample_with_a_waiver():
    assert [text for text in samples(ROOT / "docs" / "site-files.md", "yaml") if yaml.safe_load(text).get("waivers")]


def test_the_lock_file_in_the_docs_is_valid(tmp_path):
    text = next(each for each in samples(ROOT / "docs" / "provision.md", "yaml") if "nodetune.lock" in each)
    (tmp_path / "versions.lock").write_text(text)
    assert lock.read(tmp_path / "versions.lock")["debian-12-x86_64"].driver == "580.159.04"


def command_lines():
    """The commands of samples and of the text: up to a gap of two blanks, a comment, a pipe or a file."""
    found = {}
    for page in WRITTEN:
        inline = "\n".join(" ".join(code.split()) for code in re.findall(r"`(nodetune [^`|]+)`", prose(page)))
        for text in (*samples(page, "", "sh", "text", "console"), inline):
            for line in text.splitlines():
                command = re.split(r"\s{2,}|\s#|\s(?:>>?|\|)\s", line.removeprefix("$ "))[0]
                command = re.sub(r"^(?:[A-Z_]+=\S+ )*(?:salloc (?:-\S+ )*)?(?=nodetune )", "", command)
                if command.startswith("nodetune "):
                    found.setdefault(command, page.name)
    return [pytest.param(command, id=f"{name}: {command}") for command, name in found.items()]


@pytest.mark.parametrize("line", command_lines())
def test_a_command_in_the_docs_is_one_that_nodetune_takes(line):
    words = shlex.split(line)[1:]
    command, context = main.group, click.Context(main.group, info_name="nodetune")
    while isinstance(command, click.Group) and words:
        name, found, words = command.resolve_command(context, words)
        assert found is not None, f"{line}: there is no such command"
        command, context = found, click.Context(found, info_name=name, parent=context)
    known = {word: option for option in command.params for word in (*option.opts, *option.secondary_opts)}
    for word in words:
        if word.startswith("-") and len(word) > 1:
            option = known.get(word.split("=")[0])
            assert option is not None, f"{line}: nodetune {command.name} has no option {word}"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ([], ["one", "two", "three", "four"]),
        (["old", "..."], ["one", "..."]),
        (["old", "...", "older", "oldest"], ["one", "...", "three", "four"]),
    ],
)
def test_three_dots_in_a_sample_are_for_lines_left_out(shown, expected):
    assert page_samples.cut(["one", "two", "three", "four"], shown) == expected


def test_a_sample_shows_what_its_command_prints_now(tmp_path):
    page = "```console\n$ echo new\nold\n```\n\n```sh\necho kept\n```\n"
    assert page_samples.current(page, tmp_path) == page.replace("old", "new")
