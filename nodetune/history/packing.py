"""The numbers of a look, packed: JSON in zlib, which every language reads. Zeros are left out. Pure."""

import json
import zlib
from collections.abc import Sequence
from itertools import accumulate, chain, compress
from operator import sub

from nodetune.history import sound

LEVEL, WINDOW_BITS, MEMORY = 3, 13, 5
"""A look is small: with the memory of larger things, zlib takes three times as long, and packs no better."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


def pack(series: Sequence[int], values: Sequence[int]) -> bytes:
    """Return series with their values as `[gaps between the series, their values]`."""
    kept = list(compress(series, values))
    gaps = list(map(sub, kept, chain((0,), kept)))
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, MEMORY)
    return packer.compress(_encode([gaps, list(filter(None, values))]).encode()) + packer.flush()


def unpack(packed: bytes) -> dict[int, int]:
    """Return series → value. Raise one of sound.PROBLEMS."""
    gaps, values = sound.json_of(zlib.decompress(packed).decode())
    return dict(zip(accumulate(sound.numbers(gaps)), sound.numbers(values), strict=True))
