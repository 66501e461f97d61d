"""Tokens of a selection that are a prefix of names, and those that are one name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nodetune.checks.shared.nccl_reading import NcclSelection


def is_name(selection: NcclSelection, token: str) -> bool:
    """Return whether a token names one thing, such as eth0 or mlx5_0. Others are prefixes, such as eth or mlx5."""
    name = token.partition(":")[0]
    return selection.exact or (name[-1:].isdigit() and not re.fullmatch(r"mlx\d", name))


def missing(selection: NcclSelection, hit: Mapping[str, bool]) -> list[str]:
    """Return the tokens that are missing: those without a hit, but no prefix where another token has a hit."""
    some = any(hit.values())
    return [token for token, has in hit.items() if not has and (is_name(selection, token) or not some)]
