"""Several documents as one file: a tar.gz with SHA256SUMS, which ssh-keygen signs if there is a key.

The list names every file, in the order of LC_ALL=C: docs/how-to-rma.md has the commands that check it. `sha256sum -c` does
not suffice, as it says nothing of a file that was added.
"""

import gzip
import hashlib
import io
import re
import subprocess
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

from nodetune.foundation import UserError, file_io, text

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
NAMESPACE = "file"
SIGN_SECONDS = 120.0
"""An agent may ask its user."""


class SigningError(UserError):
    """The key cannot sign; one line."""


def write(path: Path, files: Mapping[str, str], key: Path | None = None) -> None:
    """Write the archive for its owner alone, whole or not at all. Its files are in a folder with its name. Raise SigningError, OSError."""
    contents = {name: content.encode("utf-8", "backslashreplace") for name, content in files.items()}
    sums = "".join(f"{hashlib.sha256(each).hexdigest()}  {name}\n" for name, each in sorted(contents.items())).encode()
    contents[SUMS] = sums
    if key:
        contents[SIGNATURE] = signature(sums, key)
    file_io.write_bytes(path, _packed(folder_in(path.name), contents), file_io.OWN)


def folder_in(name: str) -> str:
    """Return the name of the folder in an archive: never that of the archive, so that it unpacks where it is."""
    without = re.sub(r"(?<=.)(\.tar)?\.\w+$", "", name)
    return without if without != name else f"{name}-files"


def signature(data: bytes, key: Path) -> bytes:
    """Return the signature of data by a private key, or by a public one whose private key an agent has. Raise SigningError."""
    words = ["ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key)]
    try:
        done = subprocess.run(words, input=data, capture_output=True, check=False, timeout=SIGN_SECONDS)
    except FileNotFoundError:
        raise SigningError("ssh-keygen not found: install the OpenSSH client, or leave --key out") from None
    except subprocess.TimeoutExpired:
        raise SigningError(f"--key {key}: ssh-keygen did not sign within {SIGN_SECONDS:.0f} s") from None
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = text.plain(said[0], 200) if said else "failed without a message"
        raise SigningError(f"--key {key}: ssh-keygen: {why}")
    return done.stdout


def _packed(folder: str, contents: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 6, packed) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
