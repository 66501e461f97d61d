"""The numbers of a look, packed: JSON in zlib, which every language reads. Zeros are left out. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from itertools import accumulate, pairwise

LEVEL = 3


def pack(values: Mapping[int, int]) -> bytes:
    """Return series → value as `[gaps between the series, their values]`."""
    series = sorted([each for each, value in values.items() if value])
    gaps = [after - before for before, after in pairwise([0, *series])]
    return zlib.compress(json.dumps([gaps, [values[each] for each in series]], separators=(",", ":")).encode(), LEVEL)


def unpack(packed: bytes) -> dict[int, int]:
    """Return series → value."""
    gaps, values = json.loads(zlib.decompress(packed))
    return dict(zip(accumulate(gaps), values, strict=True))
