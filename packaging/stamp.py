"""The build backend's hook: wheel and sdist state the version that they were built with, wherever they are built again."""

# ruff: noqa: INP001  (not part of a package)

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VERSION = runpy.run_path(str(Path(__file__).with_name("version.py")))
REFUSED = "nodetune: this clone is shallow, so its version is not known: git fetch --unshallow"


class Stamp(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if self.metadata.version.endswith(VERSION["SHALLOW"]):
            sys.exit(REFUSED)
        source = VERSION["SOURCE"]
        self.folder = TemporaryDirectory()
        made = Path(self.folder.name, "__init__.py")
        made.write_text(VERSION["stamped"](Path(self.root, source).read_text("utf-8"), self.metadata.version), "utf-8")
        build_data["force_include"][str(made)] = source

    def finalize(self, *_: Any) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()
