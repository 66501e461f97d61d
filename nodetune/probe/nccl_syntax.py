"""The syntaxes of files with NCCL settings. Each parser yields (name, value, line number, raw line)."""

import re
import shlex

OURS = (
    r"(?:NCCL|OFI_NCCL|UCX|SHARP|FI|RDMAV|NVSHMEM)_\w+|CUDA_LAUNCH_BLOCKING|CUDA_VISIBLE_DEVICES|CUDA_DEVICE_MAX_CONNECTIONS"
    r"|NVIDIA_TF32_OVERRIDE|PYTORCH_NO_CUDA_MEMORY_CACHING|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE|TORCH_DISTRIBUTED_DEBUG"
    r"|TORCH_NCCL_BLOCKING_WAIT"
)
NAME = re.compile("(?:" + OURS + ")$")
SHELL = re.compile(
    r"(?:^|[\s;&|{(\"'])(?P<keyword>(?:export|(?:declare|typeset)\s+-\w*x\w*)\s+)?(?P<name>" + OURS + r")="
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&|)\"']*)"
)
EXPORTED = re.compile(r"(?:^|[\s;&|{(\"'])(?:export|(?:declare|typeset)\s+-\w*x\w*)\s+([^;&|\n\"']+)")


def nccl_conf(content):
    """Parse like NCCL: the text before the first `=` is the name, the rest the value; # counts only at the start.

    A line without `=` has the value None.
    """
    for number, raw in enumerate(content.split("\n"), 1):
        if raw.startswith("#") or not raw.strip():
            continue
        name, equals, value = raw.partition("=")
        if not equals:
            yield raw.strip(), None, number, raw
        else:
            yield name, re.sub("\r$", "", value), number, raw


def environment(content):
    """Parse /etc/environment like pam_env: an optional export, # ends the line, quotes are removed."""
    for number, raw in enumerate(content.split("\n"), 1):
        text = raw.partition("#")[0].strip()
        text = text[7:].lstrip() if text.startswith("export ") else text
        name, equals, value = text.partition("=")
        if equals and NAME.match(name):
            yield name, value.replace(value[0], "") if value[:1] in ("'", '"') else value, number, raw


def pam_env(content):
    """Parse `NAME DEFAULT=value OVERRIDE=value`: a literal OVERRIDE wins."""
    for number, raw in enumerate(content.split("\n"), 1):
        name, _, rest = raw.strip().partition(" ")
        if not NAME.match(name):
            continue
        given = {
            key: quoted or bare for key, quoted, bare in re.findall(r'(DEFAULT|OVERRIDE)=(?:"([^"]*)"|(\S*))', rest)
        }
        yield name, given.get("OVERRIDE") or given.get("DEFAULT", ""), number, raw


def shell(content):
    """Yield the assignments that a shell script exports, there or in another line of the same file."""
    lines = ["" if line.lstrip().startswith("#") else line for line in content.split("\n")]
    exported = set(" ".join(EXPORTED.findall("\n".join(lines))).split())
    everything = re.search(r"(?m)^\s*set\s+(?:-\w*a|-o\s+allexport)", content)
    for number, line in enumerate(lines, 1):
        for found in SHELL.finditer(line):
            name, value = found.group("name"), found.group("value")
            if found.group("keyword") or everything or name in exported or _same_export(line, found.start("name")):
                yield name, value[1:-1] if value[:1] in ("'", '"') else value, number, line


def _same_export(line, place):
    """Return whether an export earlier in the same statement covers it: `export A=1 B=2`."""
    return bool(re.search(r"(?:^|[\s;&|{(\"'])export\s[^;&|]*$", line[:place]))


def systemd(content, key):
    """Parse `Environment="A=b c" D=e` with lines continued by a backslash; quotes belong to the syntax."""
    start, text = 0, ""
    for number, raw in enumerate(content.split("\n"), 1):
        start = start or number
        text += raw.strip()
        if text.endswith("\\") and not text.startswith(("#", ";")):
            text = text[:-1] + " "
            continue
        name, equals, rest = text.partition("=")
        if equals and name.strip() == key:
            for one, value in _words(rest):
                yield one, value, start, text
        start, text = 0, ""


def _words(text):
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    pairs = [word.partition("=") for word in words]
    return [(name, value) for name, equals, value in pairs if equals and NAME.match(name)]
