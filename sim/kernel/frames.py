"""The one grid that audio moves on: 16 kHz samples in 20 ms frames, counted from the start of the session.

Everyone who converts between instants and samples calls these functions, so that there is one rule of
rounding. A sample lasts 62.5 us; an odd number of samples therefore ends on a half microsecond, and each
function says which way it goes. Left out: the samples themselves (``models`` holds those).
"""

from __future__ import annotations

__all__ = [
    "FRAME_SAMPLES",
    "FRAME_US",
    "SAMPLE_RATE_HZ",
    "frame_at_or_after",
    "next_boundary_us",
    "samples_to_us",
    "us_to_samples",
]

SAMPLE_RATE_HZ = 16_000
FRAME_SAMPLES = 320
FRAME_US = 20_000


def samples_to_us(samples: int) -> int:
    """The first whole microsecond by which ``samples`` samples have passed (rounds up)."""
    return -(-samples * 125 // 2)


def us_to_samples(us: int) -> int:
    """How many whole samples have passed after ``us`` microseconds (rounds down)."""
    return us * 2 // 125


def frame_at_or_after(at_us: int) -> int:
    """The index of the first frame that begins at ``at_us`` or later."""
    return -(-at_us // FRAME_US)


def next_boundary_us(at_us: int) -> int:
    """The frame boundary at ``at_us`` or, where it lies inside a frame, the next one."""
    return -(-at_us // FRAME_US) * FRAME_US
