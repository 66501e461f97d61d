"""Edits of files that belong to others, as functions from text to text, independent of files and hosts.

Everything else stays unchanged: comments, order, blanks, line endings, a missing last newline. A text that cannot be
parsed raises ValueError, whose message continues after the file's name.
"""

import json
import re

SWAP_MARK = "# nodetune turned swap off: "
RIVALS = {
    "noatime": {"atime", "relatime", "norelatime", "strictatime", "nostrictatime"},
    "relatime": {"atime", "noatime", "norelatime", "strictatime", "nostrictatime"},
    "nodiscard": {"discard", "discard=sync"},
    "async": {"sync"},
    "barrier": {"nobarrier", "barrier=0"},
}
"""Options that contradict an option: they are removed when it is added."""
DEFAULTS = {"nodiscard", "async", "barrier"}
"""Default options: some file systems reject them."""


def fstab_no_swap(text):
    """Turn every swap line into a comment with nodetune's name."""
    return "".join(SWAP_MARK + line if _field(line, 2) == "swap" else line for line in _lines(text))


def fstab_option(text, mount_point, option, remove=()):
    """Put `option` into the lines of a mount point in place of its rivals and of options in `remove`.

    Raise ValueError if no line mounts it.
    """
    lines = _lines(text)
    wanted = bare(mount_point)
    numbers = [number for number, line in enumerate(lines) if bare(unescaped(_field(line, 1))) == wanted]
    if not numbers:
        raise ValueError(
            f"no line mounts {mount_point}: if a unit does, set Options= by `systemctl edit $(systemd-escape -p "
            f"--suffix=mount {mount_point})`"
        )
    for number in numbers:
        lines[number] = _with_option(lines[number], option, set(remove) | RIVALS.get(option, set()))
    return "".join(lines)


def automount_option(text, key, option, remove=()):
    """Put `option` into the entry of a key in an automounter's map, in place of options in `remove`.

    Raise ValueError if the key has no entry, more than one, or one that continues on the next line.
    """
    lines = _lines(text)
    numbers = [number for number, line in enumerate(lines) if line.split()[:1] == [key]]
    if len(numbers) != 1:
        raise ValueError(f"has {len(numbers) or 'no'} entries for {key}: set {option} there manually")
    (number,) = numbers
    if lines[number].rstrip().endswith("\\"):
        raise ValueError(f"the entry for {key} continues on the next line: set {option} there manually")
    lines[number] = _with_map_option(lines[number], option, set(remove))
    return "".join(lines)


def merge_json(text, keys):
    """Merge `keys` into a JSON object (RFC 7396: objects merge, null removes, anything else replaces)."""
    try:
        found = json.loads(text, object_pairs_hook=_no_key_twice) if text.strip() else {}
    except json.JSONDecodeError as problem:
        raise ValueError(f"is not valid JSON and is left alone; fix it first: {problem}") from None
    if not isinstance(found, dict):
        raise ValueError("is not a JSON object and is left alone")
    merged = _merged(found, keys)
    same = json.dumps(merged) == json.dumps(found)  # not by ==: to Python, 1 is True
    return text if same else _as_written(merged, text)


def assignments(text, values):
    """Set NAME=VALUE lines; null removes a name.

    Only one line for each name remains: readers differ in whether the first or the last counts.
    """
    for name, value in values.items():
        if value is not None and re.search(r"[\r\n]", str(value)):
            raise ValueError(f"the value for {name} contains a line break")
        text = _assigned(text, name, value)
    return text


def without_lines(text, lines, once=()):
    """Remove every line that reads exactly like one of `lines`, but never a comment or a blank line.

    Of a line in `once` the first stays. Raise ValueError if a line to remove continues the one before it, or on the next one.
    """
    kept, before = [], ""
    for line in _lines(text):
        bare_line = line.rstrip("\n")
        wrong = bare_line in lines or (bare_line in once and bare_line in [each.rstrip("\n") for each in kept])
        if not wrong or not bare_line.strip() or line.startswith("#"):
            kept.append(line)
        elif before.endswith("\\") or bare_line.endswith("\\"):
            raise ValueError(f"the line {bare_line!r} belongs to another one: remove it manually")
        before = bare_line
    return "".join(kept)


def replaced_line(text, number, old, new):
    """Replace one line. Raise ValueError if it is neither `old` nor `new`."""
    lines = _lines(text)
    found = lines[number - 1] if 0 < number <= len(lines) else ""
    if found.rstrip("\r\n") not in (old, new):
        raise ValueError(f"line {number} is not {old.strip()!r} any more: plan again")
    lines[number - 1] = new + found[len(found.rstrip("\r\n")) :]
    return "".join(lines)


HOW = {
    "fstab_no_swap": fstab_no_swap,
    "fstab_option": fstab_option,
    "automount_option": automount_option,
    "json": merge_json,
    "line": replaced_line,
    "assignments": assignments,
    "without_lines": without_lines,
}
"""The allowed values of `how` in a change."""


def _lines(text):
    """Split lines with their ends. str.splitlines would also split at form feeds, which belong to a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _field(line, number):
    """Return a field of an fstab line, "" if it is a comment or has fewer."""
    words = line.split()
    return "" if line.lstrip().startswith("#") or len(words) <= number else words[number]


def unescaped(field):
    """Decode the octal escapes of fstab and of the kernel's tables, such as a blank."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), field)


def bare(path):
    """Remove a slash at the end."""
    return path.rstrip("/") or path[:1]


def _with_option(line, option, rivals):
    words = list(re.finditer(r"\S+", line))
    if len(words) > 3:
        start, end = words[3].span()
        return line[:start] + _options(words[3].group(), option, rivals) + line[end:]
    end = words[-1].end()  # the options may be left out
    return line[:end] + " " + _options("defaults", option, rivals) + line[end:]


def _with_map_option(line, option, rivals):
    """Return an entry of a map (key, options that begin with a dash, place) with the option."""
    words = list(re.finditer(r"\S+", line))
    if len(words) < 2:
        raise ValueError(f"the entry for {words[0].group()} has no location and is left alone")
    start, end = words[1].span()
    given = words[1].group()
    if given.startswith("-"):
        return line[:start] + "-" + _options(given[1:], option, rivals) + line[end:]
    return line[:start] + f"-{option} " + line[start:]


def _options(found, option, rivals):
    options = [each for each in found.split(",") if each not in rivals]
    if option not in options and option not in DEFAULTS:
        options.append(option)
    return ",".join(options) or "defaults"


def _no_key_twice(pairs):
    for number, (key, _) in enumerate(pairs):
        if key in [name for name, _ in pairs[:number]]:
            raise ValueError(f"contains the key {json.dumps(key)} twice and is left alone; fix it first")
    return dict(pairs)


def _merged(found, keys):
    """Merge the keys; those of `found` keep their order, new ones follow."""
    merged = dict(found)
    for key, value in keys.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            below = merged.get(key)
            merged[key] = _merged(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def _as_written(data, before):
    """Write `data` in the style of `before`: indentation, blanks, line ends, last newline."""
    step = re.search(r"\n([ \t]+)\S", before)
    one_line = re.match(r"\s*\{.*\S.*\}\s*\Z", before)
    style = {"indent": step.group(1) if step else "  "}
    if one_line:
        style = {"separators": (", ", ": ") if re.search(r'":\s', before) else (",", ":")}
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, **style)
    end = re.search(r"\s*\Z", before).group() if before.strip() else "\n"
    return text.replace("\n", "\r\n" if "\r\n" in before else "\n") + end


def _assigned(text, name, value):
    lines = _lines(text)
    names = (name, f"export {name}") if value is None else (name,)
    where = [number for number, line in enumerate(lines) if _name(line) in names]
    for number in reversed(where if value is None else where[1:]):
        del lines[number]
    if value is None:
        return "".join(lines)
    line = f"{name}={value}"
    if where:
        old = lines[where[0]]
        lines[where[0]] = line + old[len(old.rstrip("\r\n")) :]
        return "".join(lines)
    end = "\r\n" if "\r\n" in text else "\n"
    return "".join(lines) + (line + end if not text or text.endswith("\n") else end + line)


def _name(line):
    """Return the name that a line sets, "" for comments and all other lines."""
    name, equals, _ = line.partition("=")
    return "" if line.lstrip().startswith("#") or not equals else name.strip()
