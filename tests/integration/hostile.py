"""A host that answers, but not as it should: run in place of the probe, with the name of its fault."""

import base64
import json
import os
import re
import signal
import sys
import time
import zlib

script = sys.stdin.buffer.read().decode()
NONCE = re.search(r"^NONCE = '(\w+)'", script, re.MULTILINE)[1]
ESCAPES = "\x1b]0;owned\x07\x1b[2J[bold red]{{ 7*7 }}\u202e\x00"


def frame(packed, missing=0):
    text = base64.b64encode(packed).decode()
    parts = [text[at : at + 900] for at in range(0, len(text), 900)]
    count = len(parts) + missing
    return "".join(f"<<nodetune {NONCE} {n + 1}/{count} {part}>>\n" for n, part in enumerate(parts)).encode()


def document(facts, **more):
    return frame(zlib.compress(json.dumps({"schema": "nodetune.facts/1", "facts": facts, **more}).encode()))


def say(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def half_an_answer():
    whole = document({f"host.n{n}": {"value": os.urandom(8).hex()} for n in range(1000)})
    say(whole[: len(whole) // 2])


def drop_the_connection():
    time.sleep(0.5)  # what was said before is on its way
    os.kill(os.getppid(), signal.SIGKILL)


def bomb():
    packer = zlib.compressobj(9)
    return frame(b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush())


match sys.argv[1]:
    case "deep":
        say(frame(zlib.compress(b"[" * 200_000)))
    case "deep fact":
        say(document({"host.arch": json.loads('{"value":' + "[" * 50 + "]" * 50 + "}")}))
    case "huge":
        say(frame(zlib.compress(b"[" + b"[]," * 5_000_000 + b"[]]")))
    case "bomb":
        say(bomb())
    case "number":
        say(frame(zlib.compress(b'{"facts": {"host.arch": {"value": ' + b"9" * 1_000_000 + b"}}}")))
    case "infinite":
        say(frame(zlib.compress(b'{"facts": {"host.arch": {"value": Infinity}}}')))
    case "types":
        say(frame(zlib.compress(b'{"facts": ["not", "facts"]}')))
    case "kinds":
        say(document({"host.arch": {"worth": 1}}))
    case "schema":
        say(document({}, schema="nodetune.facts/999"))
    case "not utf-8":
        say(frame(zlib.compress(b'{"facts": {"host.arch": {"value": "\xff\xfe"}}}')))
    case "not zlib":
        say(frame(b"\xff\xfe\x00 plain"))
    case "checksum":
        say(frame(zlib.compress(b"{}")[:-1] + b"?"))
    case "size":
        say(frame(zlib.compress(b"{}"), missing=1))
    case "escapes":
        say(
            document(
                {
                    "host.arch": {"value": ESCAPES},
                    ESCAPES: {"absent": ESCAPES},
                    "gpu.x": {"each": {ESCAPES: {"unread": ESCAPES}}},
                },
                host="../../etc/passwd",
            )
        )
    case "half":
        half_an_answer()
    case "half, dropped":
        half_an_answer()
        drop_the_connection()
    case "dropped":
        drop_the_connection()
    case "answer, then endless":
        say(document({"host.arch": {"value": "x86_64"}}))
        while True:
            say(b"y\n" * 32768)
    case "answer, then hangs":
        say(document({"host.arch": {"value": "x86_64"}}))
        time.sleep(45)
