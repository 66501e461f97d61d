"""SSH by paramiko, in threads of this process.

paramiko imports invoke, with unittest and asyncio, for `Match exec` in a configuration file, which OpenSSH mostly reads
for us. That is a third of what paramiko takes to start: a placeholder module imports invoke once it is used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def _placeholder() -> ModuleType:
    module = ModuleType("invoke")

    def of_invoke(name: str) -> Any:
        if sys.modules.get("invoke") is module:
            del sys.modules["invoke"]
        return getattr(import_module("invoke"), name)

    vars(module)["__getattr__"] = of_invoke
    return module


if "invoke" not in sys.modules:
    sys.modules["invoke"] = _placeholder()
