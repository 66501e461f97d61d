"""SSH by paramiko, in threads of this process.

paramiko imports invoke, with unittest and asyncio, for `Match exec` in a configuration file, but OpenSSH usually reads
that file for us. This is a third of paramiko's start-up, so a placeholder module imports invoke on first use.
"""

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
