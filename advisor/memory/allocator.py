"""What torch's CUDA allocator asks the driver for, and which tensors a printed "Tried to allocate" can mean."""

from __future__ import annotations

from advisor.memory import constants as c
from advisor.units import GIB


def segment_request(size: int) -> int:
    """Bytes the allocator asks for when it needs a new segment for a tensor of `size` bytes."""
    if size <= c.SMALL_SIZE:
        return c.SMALL_SEGMENT
    if size < c.LARGE_FROM:
        return c.LARGE_SEGMENT
    return -(-size // c.LARGE_ROUND) * c.LARGE_ROUND


def identifies_nothing(tried: int) -> bool:
    """2.00 MiB stands for any tensor up to 1 MiB, 20.00 MiB for any of 1 to 10 MiB: a full card, not a culprit."""
    return tried in (c.SMALL_SEGMENT, c.LARGE_SEGMENT)


def can_mean(tried: int, size: int) -> bool:
    """Whether a tensor of `size` bytes prints as `tried` (which was rounded to two decimals of MiB or GiB)."""
    if size <= 0:
        return False
    half = c.PRINT_STEP_GIB if tried >= GIB else c.PRINT_STEP_MIB
    return abs(segment_request(size) - tried) <= half + 1


def elements_window(tried: int, width: int) -> tuple[int, int]:
    """Fewest and most rows of `width` bytes whose tensor prints as `tried`."""
    half = c.PRINT_STEP_GIB if tried >= GIB else c.PRINT_STEP_MIB
    least = max(1, -(-round(tried - half - c.LARGE_ROUND + 1) // width))
    return least, max(least, int(tried + half) // width)
