"""What a setting is, where it may stand, and how a report names it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Setting = Mapping[str, Any]
"""name, value (None where the line has no =), file, line, raw and scope: one line of one file."""

Problems = dict[str, str]
"""Subject → what is wrong with it."""

CONF_SCOPES = ("home", "nccl.conf")
"""Files that NCCL itself reads."""

EVALUATED = ("profile", "task prolog", "container")
"""Where a shell or its like may compute the value."""


def subject(setting: Setting) -> str:
    return f"{setting['file']}:{setting['line']} {meant(setting)}"


def meant(setting: Setting) -> str:
    """The name that the writer had in mind."""
    name = str(setting["name"]).strip(" \t\r\"'\ufeff")
    return re.sub(r"^(export|set|setenv)\s+", "", name) if setting["scope"] in CONF_SCOPES else name
