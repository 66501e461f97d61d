"""Find the sizes that fit into the free memory of the GPUs, for NCCL's collectives and for nccl-tests."""

from nodetune.measurements.cuda import driver_api

ASIDE = 4 << 30
"""Bytes of a GPU's memory reserved for NCCL, CUDA and the data check."""


def least(free):
    """Return the smallest free memory of some GPUs; None if none of them reports it."""
    known = [each for each in free if each is not None]
    return min(known) if known else None


def fitting(sizes, free, buffers, report):
    """Return the sizes whose buffers fit into the free memory, or the smallest one, which then fails."""
    fit = [size for size in sizes if free is None or buffers * size + ASIDE <= free] or [min(sizes)]
    left_out = [driver_api.in_words(size) for size in sorted(set(sizes) - set(fit))]
    if left_out:
        text = "{} left out: {} buffers of that size do not fit into {} of free memory"
        report.note(text.format(", ".join(left_out), buffers, driver_api.in_words(free)))
    return fit
