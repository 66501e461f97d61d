"""Exchange data between a host and its controller, in both directions, as lines among any other output.

Data (bytes) becomes `<<nodetune NONCE PART/PARTS TEXT>>`, with TEXT as deflated base64. Long data takes several lines,
each short enough that tools which merge the output of many hosts line by line (srun --label) can carry it.
"""

import base64
import binascii
import json
import re
import zlib

MAX_SECONDS = 900
"""Characters of TEXT in one line. srun --label breaks lines of more than 1024 bytes in two."""

MAX_PARTS = 10000
MAX_UNPACKED = 16 << 20
"""Limit in bytes: a hundred times the largest message of a host with eight GPUs."""

MAX_VALUES = 500000
"""Limit for values in a JSON text: an empty list takes two bytes of text but thirty times as many in memory."""

TOGETHER = 4
"""All messages of one host together may be this many times as large."""

ENDED = "(ended)"
"""The topic of the message that a host has ended its part of a measurement, with the reason: a text, or {"skip": text}
if it lacks something to measure with. The first counts."""

KEPT_NOISE = 2000
MAX_LINE_LENGTH = MAX_SECONDS + 200


class LineError(Exception):
    """A line with the right nonce and the wrong content."""


class TooMuchError(LineError):
    """Data that would fill memory."""


def encode(data, nonce):
    """Encode data as lines."""
    text = base64.b64encode(zlib.compress(data, 6)).decode("ascii")
    parts = [text[at : at + MAX_SECONDS] for at in range(0, len(text), MAX_SECONDS)]
    lines = ["<<nodetune {} {}/{} {}>>\n".format(nonce, n + 1, len(parts), part) for n, part in enumerate(parts)]
    return "".join(lines).encode("ascii")


def encode_event(event, nonce):
    """Encode an event (JSON data) as lines."""
    return encode(json.dumps(event).encode("ascii"), nonce)


def event(data):
    """Decode an event. Raises LineError, ValueError, RecursionError."""
    found = json.loads(data.decode("ascii"), parse_constant=_no_number)
    if not isinstance(found, dict):
        raise LineError("it is not an event")
    return found


def _no_number(name):
    raise ValueError(name + " is not valid JSON")


class Decoder:
    """Finds data in a stream and decodes it with `read`. The data is untrusted: every size is limited before unpacking.

    `parts` has the parts of incomplete data, `packed` the last complete data before it was unpacked (zlib), `old` the version of a Python that is too old.
    """

    def __init__(self, nonce, read=bytes):
        self._mark = b"<<nodetune " + nonce.encode("ascii") + b" "
        form = rb"(?:old ([0-9.]{1,12})|(\d{1,5})/(\d{1,5}) ([A-Za-z0-9+/=]{1,%d}))>>" % MAX_SECONDS
        self._line = re.compile(re.escape(self._mark) + form)
        self._read = read
        self._noise = self._rest = self.packed = b""
        self.parts = []
        self._unpacked = self._values = 0
        self._found = False
        self.old = ""

    @property
    def begun(self):
        """Whether data or a part of it has arrived."""
        return self._found or self._mark in self._rest

    @property
    def noise(self):
        """The beginning of other output."""
        return (self._noise + self._rest)[:KEPT_NOISE]

    def feed(self, data):
        """Return the complete data. Raises LineError."""
        whole, _, self._rest = (self._rest + data).rpartition(b"\n")
        lines = whole.split(b"\n") if self._mark in whole else [whole]  # much noise takes no time
        if len(self._rest) > MAX_LINE_LENGTH:  # nodetune writes no such lines
            self._keep(self._rest)
            self._rest = self._rest[-MAX_LINE_LENGTH:]
        return [found for found in map(self._take, lines) if found is not None]

    def _take(self, line):
        found = self._line.search(line) if self._mark in line else None
        if found is None:
            self._keep(line)
            return None
        old, number, count, text = found.groups()
        self._found = True
        if old:
            self.old = old.decode("ascii")
            return None
        self._add(int(number), int(count), text)
        return self._whole() if number == count else None

    def _add(self, number, count, text):
        if number != len(self.parts) + 1 or number > count or count > MAX_PARTS:
            raise LineError("part {} of {} came after {}".format(number, count, len(self.parts)))
        self.parts.append(text)

    def _whole(self):
        text, self.parts = b"".join(self.parts), []
        unpacker = zlib.decompressobj()
        try:
            self.packed = base64.b64decode(text)
            data = unpacker.decompress(self.packed, MAX_UNPACKED)
            if unpacker.unconsumed_tail:
                raise TooMuchError("it unpacks to more than {} MiB".format(MAX_UNPACKED >> 20))
            if not unpacker.eof:
                raise LineError("it ends too early")
            self._count(data)
            return self._read(data)
        except (binascii.Error, zlib.error):
            raise LineError("it cannot be unpacked")
        except (ValueError, RecursionError):
            raise LineError("it is not valid JSON")

    def _count(self, data):
        values = sum(map(data.count, (b",", b"[", b"{")))
        self._unpacked += len(data)
        self._values += values
        if values > MAX_VALUES or self._values > TOGETHER * MAX_VALUES:
            raise TooMuchError("it contains more than {} values".format(MAX_VALUES))
        if self._unpacked > TOGETHER * MAX_UNPACKED:
            raise TooMuchError("all of it unpacks to more than {} MiB".format(TOGETHER * MAX_UNPACKED >> 20))

    def _keep(self, line):
        if len(self._noise) < KEPT_NOISE and line.strip():
            self._noise += line[:KEPT_NOISE] + b"\n"
