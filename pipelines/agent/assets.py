"""Binary content, stored once however often it is used.

A run's history hands every medium in here; bytes that came raw or in base64 are kept under the SHA-256 of what they
are, and each use keeps how it came, so that it goes out as it came in (run contract, section 1). Unused bytes go only
when somebody asks for it. Left out: looking at the bytes, and fetching what is elsewhere.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from bargein.pipelines.agent.media_sources import Base64, ContentError, Raw, Source, Stored

__all__ = ["AssetLimits", "BinaryAssets"]

MAX_INDEXED = 256
"""Spellings remembered, so that one that comes again is not decoded again."""
_GROUP = 4


@dataclass(frozen=True, slots=True)
class AssetLimits:
    """Bounds of a store; decoded bytes."""

    max_payload_bytes: int = 64 * 1024 * 1024
    max_retained_bytes: int = 256 * 1024 * 1024
    max_assets: int = 65_536


class BinaryAssets:
    """The store.

    Args:
        limits: what it holds at most.
        max_indexed: how many spellings it remembers; no part of what is kept.

    Attributes:
        retained_bytes: decoded bytes held.
        decoded: how often base64 was decoded.
    """

    def __init__(self, limits: AssetLimits | None = None, max_indexed: int = MAX_INDEXED) -> None:
        self.limits = limits or AssetLimits()
        self.retained_bytes = 0
        self.decoded = 0
        self._assets: dict[str, bytes] = {}
        self._max_indexed = max_indexed
        self._index: dict[bytes, Stored] = {}

    def __len__(self) -> int:
        return len(self._assets)

    def __contains__(self, digest: str) -> bool:
        return digest in self._assets

    @property
    def digests(self) -> tuple[str, ...]:
        """What is held, in the order it came."""
        return tuple(self._assets)

    def data(self, digest: str) -> bytes:
        """The bytes under ``digest``.

        Raises:
            ContentError: there are none.
        """
        try:
            return self._assets[digest]
        except KeyError:
            raise ContentError(f"asset {digest}: it is not in the store") from None

    def put(self, source: Source) -> Source:
        """Keep the bytes of ``source`` and give back where they are now; what is elsewhere stays as it is.

        Raises:
            ContentError: it is no base64, or a limit would be passed; nothing was changed.
        """
        if isinstance(source, Raw):
            return Stored(self._keep(source.data))
        if isinstance(source, Base64):
            return self._put_spelled(source.text)
        if isinstance(source, Stored):
            self.data(source.sha256)
        return source

    def out(self, source: Source) -> Source:
        """``source`` as it was once put in.

        Raises:
            ContentError: its bytes are not in the store.
        """
        if not isinstance(source, Stored):
            return source
        data = self.data(source.sha256)
        if not source.spelled:
            return Raw(data)
        whole = b64encode(data).decode("ascii")
        return Base64(whole[: (len(data) - 1) // 3 * _GROUP] + source.tail if data else source.tail)

    def _put_spelled(self, text: str) -> Stored:
        spelling = sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._index.get(spelling)
        if known is not None and known.sha256 in self._assets:
            return known
        bare = text.rstrip("=")
        padding = -len(bare) % _GROUP
        if len(bare) % _GROUP == 1 or len(text) - len(bare) not in (0, padding):
            raise ContentError(f"base64 of {len(text)} characters: no bytes are spelled so; accepted is whole base64")
        try:
            self.decoded += 1
            data = b64decode(bare + "=" * padding, validate=True)
        except (Base64Error, ValueError):
            raise ContentError(f"base64 of {len(text)} characters: found a character that is none of it") from None
        stored = Stored(self._keep(data), True, text[(len(data) - 1) // 3 * _GROUP :] if data else text)
        if len(self._index) >= self._max_indexed:
            del self._index[next(iter(self._index))]
        self._index[spelling] = stored
        return stored

    def _keep(self, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        if digest in self._assets:
            return digest
        limits = self.limits
        if len(data) > limits.max_payload_bytes:
            raise ContentError(f"asset of {len(data)} bytes: accepted are up to {limits.max_payload_bytes}")
        if self.retained_bytes + len(data) > limits.max_retained_bytes:
            raise ContentError(
                f"asset of {len(data)} bytes: the store holds {self.retained_bytes} of {limits.max_retained_bytes}"
            )
        if len(self._assets) >= limits.max_assets:
            raise ContentError(f"one asset more: the store holds {limits.max_assets}, which is all it may")
        self._assets[digest] = data
        self.retained_bytes += len(data)
        return digest

    def copy(self) -> BinaryAssets:
        """A store with the same payloads and limits; what is put into one of the two is not in the other."""
        other = BinaryAssets(self.limits, self._max_indexed)
        other._assets = dict(self._assets)
        other.retained_bytes = self.retained_bytes
        return other

    def adopt(self, other: BinaryAssets) -> None:
        """Keep what a copy has that has grown meanwhile; it was within the limits there."""
        self._assets = dict(other._assets)
        self.retained_bytes = other.retained_bytes

    def collect(self, roots: Iterable[str]) -> int:
        """Drop what is not among ``roots``: every digest that any content uses or a host pins.

        Returns:
            How many were dropped.

        Raises:
            ContentError: a root is not in the store; nothing was changed.
        """
        kept = dict.fromkeys(roots)
        for digest in kept:
            self.data(digest)
        unused = [digest for digest in self._assets if digest not in kept]
        for digest in unused:
            self.retained_bytes -= len(self._assets.pop(digest))
        self._index = {spelling: stored for spelling, stored in self._index.items() if stored.sha256 in self._assets}
        return len(unused)
