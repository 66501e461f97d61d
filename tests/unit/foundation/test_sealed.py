"""Several documents as one file with checksums and a signature, checked with the tools that the docs name."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from nodetune.foundation import sealed
from tests.support import archives

GUIDE = Path(__file__).parents[3] / "docs/how-to-rma.md"
FILES = {"summary.txt": "gpu017 is well\n", "facts.json": "{}\n"}
needs_ssh_keygen = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen here")


def unpacked(path, into):
    archives.unpack(path, into)
    return into / path.name.removesuffix(".tar.gz")


def made_key(folder, passphrase=""):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", folder / "key"], check=True)
    return folder / "key"


def succeeds(folder, *words, **more):
    return subprocess.run(words, cwd=folder, capture_output=True, check=False, **more).returncode == 0


def test_sha256sum_finds_a_file_that_was_changed(tmp_path):
    sealed.write(tmp_path / "proof.tar.gz", FILES)
    folder = unpacked(tmp_path / "proof.tar.gz", tmp_path / "out")
    assert sorted(each.name for each in folder.iterdir()) == ["SHA256SUMS", "facts.json", "summary.txt"]
    assert succeeds(folder, "sha256sum", "-c", sealed.SUMS)
    (folder / "facts.json").write_text("{ }\n")
    assert not succeeds(folder, "sha256sum", "-c", sealed.SUMS)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("a.example-1.tar.gz", "a.example-1"), ("a.tgz", "a"), ("a.b.tar", "a.b"), ("a", "a-files"), (".a", ".a-files")],
)
def test_an_archive_unpacks_in_the_folder_where_it_is(tmp_path, name, folder):
    sealed.write(tmp_path / name, FILES)
    archives.unpack(tmp_path / name, tmp_path)
    assert (tmp_path / folder / "summary.txt").read_text() == FILES["summary.txt"]


@needs_ssh_keygen
def test_ssh_keygen_finds_other_checksums_and_another_key(tmp_path):
    key = made_key(tmp_path)
    sealed.write(tmp_path / "proof.tar.gz", FILES, key)
    folder = unpacked(tmp_path / "proof.tar.gz", tmp_path / "out")
    signers = tmp_path / "signers"
    signers.write_text(f"ops {key.with_suffix('.pub').read_text()}")
    check = ("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "ops", "-n", "file", "-s", sealed.SIGNATURE)
    sums = (folder / sealed.SUMS).read_bytes()
    assert succeeds(folder, *check, input=sums)
    assert not succeeds(folder, *check, input=sums + b"x")
    (tmp_path / "other").mkdir()
    signers.write_text(f"ops {made_key(tmp_path / 'other').with_suffix('.pub').read_text()}")
    assert not succeeds(folder, *check, input=sums)


def repacked(source, target, turned, more=()):
    """Pack an archive again, each member's path and content as `turned` makes them (None: without it), then `more`."""
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        members = [(each.name, old.extractfile(each).read()) for each in old.getmembers()]
        for path, content in [*filter(None, (turned(*each) for each in members)), *more]:
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))


def renamed(path, content):
    return path.replace("facts", "fact"), content


def removed(path, content):
    return None if path.endswith("facts.json") else (path, content)


def altered(path, content):
    return path, content + b" " if path.endswith("facts.json") else content


def as_it_was(path, content):
    return path, content


TAMPERED = {
    "renamed": (renamed, ()),
    "removed": (removed, ()),
    "changed": (altered, ()),
    "added": (as_it_was, [("proof/audit-after-load.json", b"{}\n")]),
    "added, hidden": (as_it_was, [("proof/.note", b"")]),
    "added below": (as_it_was, [("proof/more/SHA256SUMS", b"")]),
    "added next to it": (as_it_was, [("other/verify.json", b"{}\n")]),
    "signers of its own": (as_it_was, [("proof/signers", b"ops ssh-ed25519 AAAA\n")]),
}


@needs_ssh_keygen
@pytest.mark.parametrize("how", [None, *TAMPERED])
def test_the_guides_commands_find_any_other_set_of_files(tmp_path, how):
    key = made_key(tmp_path)
    (tmp_path / "signers").write_text(f"ops {key.with_suffix('.pub').read_text()}")
    sealed.write(tmp_path / "proof.tar.gz", {"audit.json": "1\n", "audit-after.json": "2\n", **FILES}, key)
    turned, more = TAMPERED.get(how, (as_it_was, ()))
    repacked(tmp_path / "proof.tar.gz", tmp_path / "given.tar.gz", turned, more)
    commands = GUIDE.read_text().partition("To check the evidence")[2].split("```")[1].removeprefix("sh\n")
    own = commands.replace("gpu017-readmit-20301231T1200Z.tar.gz", "given.tar.gz").replace("NAME", "ops")
    assert own.count("given.tar.gz") == 1 and own.count("ops") == 1
    assert succeeds(tmp_path, "bash", "-e", "-c", own) == (how is None)


@needs_ssh_keygen
def test_a_key_that_cannot_sign_is_one_line_and_leaves_no_file(tmp_path):
    (tmp_path / "key").write_text("not a key\n")
    with pytest.raises(sealed.SigningError) as told:
        sealed.write(tmp_path / "proof.tar.gz", FILES, tmp_path / "key")
    assert str(told.value).startswith(f"--key {tmp_path / 'key'}: ssh-keygen: ")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "proof.tar.gz").exists()
