"""Lists of numbers as the kernel and Slurm write them: 0-3,8."""

MAX_CPUS = 1 << 17
"""No number is larger, and no list longer: a hostile text must not take all memory."""


def parse(text, most=MAX_CPUS):
    """Parse `0-3,8` into [0, 1, 2, 3, 8]; lines separate too, an empty text is an empty list. Raise ValueError."""
    found = []
    for part in text.replace("\n", ",").split(","):
        first, dash, last = part.strip().partition("-")
        if first or dash:
            low, high = int(first), int(last if dash else first)
            if not 0 <= low <= high < most or len(found) + high - low >= most:
                raise ValueError("not a list of numbers: {!r}".format(part[:60]))
            found.extend(range(low, high + 1))
    return found


def parse_or_empty(text, most=MAX_CPUS):
    """Parse a list as `parse` does; return an empty list for any other text."""
    try:
        return parse(text, most)
    except ValueError:
        return []


def fold(numbers):
    """Fold [0, 1, 2, 5] into "0-2,5"."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else "{}-{}".format(low, high) for low, high in runs)


def bracketed(numbers):
    """Fold [0, 1, 2] into "[0-2]" and [7] into "7", as Slurm writes the numbers in a name."""
    text = fold(numbers)
    return text if text.isdigit() else "[" + text + "]"
