"""Modules' options, or a module kept from loading: modprobe.d, and the initial RAM disk that holds a copy of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import Allowed, named, own_file, plain_line, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

BLACKLIST = "blacklist"
OPTION, VALUE = r"\w+", r"[\w.,:=@/+-]*"


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    """Return the changes. `value` is "blacklist", or a mapping of options."""
    made = []
    for fix in fixes:
        name = named(fix.target, "module", r"[\w-]+")
        path = f"/etc/modprobe.d/nodetune-{name}.conf"
        change = own_file(host, path, "modprobe.conf.j2", _settings(name, fix.value), allowed(name))
        made.append(change | {"checks": host.checks(fix)})
    return [*made, {"change": "run", "run": "initramfs"}]


def allowed(module: str) -> Allowed:
    """Allow the module's own options, and that it is kept from loading."""

    def of_module(keys: tuple[str, ...], value: Any) -> bool:
        if keys[:2] == ("options", module):
            return value == {} if len(keys) == 2 else plain_line(keys[2], OPTION) and plain_line(value, VALUE)
        return keys == (BLACKLIST,) and value == [module]

    return of_module


def _settings(name: str, value: Any) -> dict[str, Any]:
    if value == BLACKLIST:
        # modeset=0 keeps it off the GPUs even where something loads it by name
        return {"blacklist": [name], "options": {name: {"modeset": "0"} if name == "nouveau" else {}}}
    if not isinstance(value, Mapping):
        raise UnfixableError(f'the module {name} is set to "blacklist" or to a mapping of options, not to {value!r}')
    options = {named(str(key), "option", OPTION): named(text_of(each), "value", VALUE) for key, each in value.items()}
    return {"options": {name: options}}
