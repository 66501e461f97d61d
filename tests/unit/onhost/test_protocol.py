"""The lines between a host and its controller: whatever else is printed, and whatever a host makes of them."""

import base64
import json
import random
import zlib

import pytest

from nodetune.onhost import protocol

NONCE = "00ff00ff00ff00ff"
EVENTS = [{"step": {"text": "é→"}}, {"record": {"samples": [1.5, 2]}}, {"note": "".join(map(str, range(30000)))}]


def line(data, part="1/1", nonce=NONCE):
    return f"<<nodetune {nonce} {part} {base64.b64encode(data).decode()}>>\n".encode()


def lines(data):
    """What encode makes of data that it would not make itself."""
    text = base64.b64encode(data).decode()
    parts = [text[at : at + protocol.MAX_SECONDS] for at in range(0, len(text), protocol.MAX_SECONDS)]
    return "".join(f"<<nodetune {NONCE} {n + 1}/{len(parts)} {part}>>\n" for n, part in enumerate(parts)).encode()


def packed(text):
    return zlib.compress(text.encode())


def decoder():
    return protocol.Decoder(NONCE, protocol.event)


def stream(events=EVENTS):
    return b"".join(protocol.encode_event(event, NONCE) for event in events)


def test_what_is_sent_is_what_arrives_however_it_is_cut():
    data, chance = stream(), random.Random(1)
    for _ in range(20):
        reader, found, at = decoder(), [], 0
        while at < len(data):
            step = chance.choice((1, 7, 100, 4096, 70000))
            found += reader.feed(data[at : at + step])
            at += step
        assert found == EVENTS


def test_no_line_is_longer_than_tools_that_merge_lines_carry():
    assert max(map(len, stream().splitlines())) < 1024 - len("12345: ")
    assert len(stream().splitlines()) > len(EVENTS), "a long event took several lines"


def test_events_are_found_in_whatever_else_is_printed():
    noisy = b"Welcome!\n\x1b[31m" + b"".join(b"0: " + each + b"\nx" * 9000 + b"\n" for each in stream().splitlines())
    reader = decoder()
    assert reader.feed(noisy) == EVENTS
    assert reader.noise.startswith(b"Welcome!")
    assert len(reader.noise) < 10000


def test_lines_of_another_run_are_noise():
    reader = decoder()
    assert reader.feed(stream().replace(NONCE.encode(), b"0" * 16)) == []
    assert reader.feed(stream()) == EVENTS


def test_an_endless_line_does_not_fill_memory():
    reader = decoder()
    for _ in range(200):
        assert reader.feed(b"y" * 100_000) == []
    assert len(reader._rest) <= protocol.MAX_LINE_LENGTH
    assert reader.feed(b"\n" + stream()) == EVENTS


def test_an_old_python_is_recognized():
    reader = decoder()
    reader.feed(f"\n<<nodetune {NONCE} old 2.7>>\n".encode())
    assert reader.old == "2.7"


@pytest.mark.parametrize(
    "data",
    [
        line(b"not deflated"),
        line(packed("not json")),
        line(packed("[1]")),
        line(packed('{"a": NaN}')),
        line(packed("[" * 100_000)),
        line(packed('{"a": ' + "9" * 10_000 + "}")),
        line(packed('{"a": 1}')[:-3]),
        line(packed('{"a": 1}'), "2/2"),
        line(packed('{"a": 1}'), "1/0"),
        line(b"x", "1/3") + line(b"x", "3/3"),
        line(b"x", "1/99999"),
        lines(packed('{"a": "' + "0" * protocol.MAX_UNPACKED + '"}')),
        lines(packed('{"a": [' + "[]," * (protocol.MAX_VALUES // 2) + "1]}")),
    ],
    ids=range(13),
)
def test_a_damaged_or_hostile_line_is_refused(data):
    with pytest.raises(protocol.LineError):
        decoder().feed(data)


def test_many_events_that_unpack_to_much_are_refused():
    bomb = protocol.encode_event({"a": "0" * (protocol.MAX_UNPACKED - 100)}, NONCE)
    with pytest.raises(protocol.LineError, match="all of it unpacks"):
        decoder().feed(bomb * 20)


def test_events_are_plain_ascii():
    assert json.loads(json.dumps(EVENTS)) == EVENTS
    assert stream().isascii()
