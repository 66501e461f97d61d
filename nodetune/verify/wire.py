"""The wire between a host and its controller, in both directions and on both ends: lines in whatever else is printed.

An event (JSON data) is `<<nodetune NONCE PART/PARTS DATA>>`, DATA being base64 of deflated JSON. Long ones take several
lines, each short enough that tools which merge the output of many hosts line by line (srun --label) can carry it.
"""

import base64
import json
import re
import zlib

LONGEST = 900
"""Characters of DATA in one line. srun --label breaks lines of more than 1024 bytes in two."""

MOST_PARTS = 800
MOST_UNPACKED = 4 << 20
"""Bytes of one event; of all together sixteen times as many."""

MOST_VALUES = 2000000
"""In all events together: an empty list takes two bytes there and twenty times as many here."""

KEPT_NOISE = 2000
LONGEST_LINE = LONGEST + 200


class BadLine(Exception):
    """A line with the right nonce and the wrong content."""


def encode(event, nonce):
    """An event as bytes."""
    data = base64.b64encode(zlib.compress(json.dumps(event).encode("ascii"), 6)).decode("ascii")
    parts = [data[at : at + LONGEST] for at in range(0, len(data), LONGEST)]
    lines = ["<<nodetune {} {}/{} {}>>\n".format(nonce, n + 1, len(parts), part) for n, part in enumerate(parts)]
    return "".join(lines).encode("ascii")


class Decoder:
    """Finds events in a stream. Trusts nothing: every size is bounded before it is unpacked.

    `noise` is the beginning of what else was printed; `old` the version of a Python that cannot run this.
    """

    def __init__(self, nonce):
        mark = re.escape(nonce).encode("ascii")
        self._line = re.compile(rb"<<nodetune " + mark + rb" (\d{1,3})/(\d{1,3}) ([A-Za-z0-9+/=]{1,%d})>>" % LONGEST)
        self._old = re.compile(rb"<<nodetune " + mark + rb" old ([0-9.]{1,12})>>")
        self._rest = b""
        self._parts = []
        self._unpacked = self._values = 0
        self.noise = b""
        self.old = ""

    def feed(self, data):
        """The events that are complete now. Raises BadLine."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:  # nobody of ours writes such lines
            self._keep(self._rest)
            self._rest = self._rest[-LONGEST_LINE:]
        return [event for event in map(self._take, lines) if event is not None]

    def _take(self, line):
        found = self._line.search(line)
        if found is None:
            old = self._old.search(line)
            self.old = old.group(1).decode("ascii") if old else self.old
            self._keep(line)
            return None
        number, count = int(found.group(1)), int(found.group(2))
        if number != len(self._parts) + 1 or number > count or count > MOST_PARTS:
            raise BadLine("part {} of {} came after {}".format(number, count, len(self._parts)))
        self._parts.append(found.group(3))
        if number < count:
            return None
        packed, self._parts = b"".join(self._parts), []
        return self._event(packed)

    def _event(self, packed):
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(base64.b64decode(packed), MOST_UNPACKED)
            self._unpacked += len(data)
            self._values += sum(map(data.count, (b",", b"[", b"{")))
            whole = unpacker.eof and not unpacker.unconsumed_tail
            if not whole or self._unpacked > 16 * MOST_UNPACKED or self._values > MOST_VALUES:
                raise BadLine("it unpacks to more than any measurement says")
            event = json.loads(data.decode("ascii"), parse_constant=_no_number)
        except (ValueError, zlib.error, RecursionError) as problem:
            raise BadLine("it cannot be unpacked ({})".format(type(problem).__name__))
        if not isinstance(event, dict):
            raise BadLine("it is no event")
        return event

    def _keep(self, line):
        if line.strip() and len(self.noise) < KEPT_NOISE:
            self.noise += line[:KEPT_NOISE] + b"\n"


def _no_number(name):
    raise ValueError(name + " is no JSON")
