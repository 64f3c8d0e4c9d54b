"""Named random streams: each component draws from its own, derived from ``(seed, name)``.

A new component therefore never shifts another's draws. A stream is a counter pushed through the SplitMix64
mixer, in Python integers: cheap to make, the same on every machine, and its state is two integers. Left out:
distributions (``models.latency`` turns a draw into a duration).
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["Stream", "Streams"]

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


class Stream:
    """One component's private sequence of draws."""

    __slots__ = ("_key", "drawn", "name")

    def __init__(self, seed: int, name: str) -> None:
        digest = blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
        self._key = int.from_bytes(digest, "little")
        self.name = name
        self.drawn = 0

    def u64(self) -> int:
        """The next draw, uniform over 0 .. 2**64 - 1."""
        self.drawn += 1
        z = (self._key + self.drawn * _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """The next draw, uniform over 0 .. ``bound`` - 1 (bias under 2**-40 for any bound used here)."""
        if bound <= 0:
            raise ValueError(f"below() takes a positive bound, not {bound}")
        return (self.u64() * bound) >> 64

    def unit(self) -> float:
        """The next draw, uniform inside (0, 1), exact in 53 bits: never 0 and never 1."""
        return ((self.u64() >> 12) + 0.5) * 2.0**-52


class Streams:
    """All streams of one session, made on first use."""

    __slots__ = ("_streams", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        """The stream called ``name``; the same object each time."""
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = Stream(self.seed, name)
        return found
