"""The two ways in which a wire goes wrong: an answer that cannot be read, and a request that would be refused.

Decoders raise the first, encoders the second. Left out: what the pipeline makes of them; a failed completion.
"""

from __future__ import annotations

__all__ = ["RequestError", "WireError"]


class WireError(Exception):
    """The provider's bytes are not what its wire allows, or it reported a failure of its own.

    Args: the provider, the number of the event from 1, the offset of its first byte in the stream, what is wrong.
    """

    def __init__(self, provider: str, event: int, offset: int, what: str) -> None:
        super().__init__(provider, event, offset, what)
        self.provider = provider
        self.event = event
        self.offset = offset
        self.what = what

    def __str__(self) -> str:
        return f"{self.provider}, event {self.event} at byte {self.offset}: {self.what}"


class RequestError(ValueError):
    """A request that cannot be said on this wire, or that the provider would refuse.

    Args: the provider, the reason.
    """

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(provider, reason)
        self.provider = provider
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.provider} would refuse this request, because {self.reason}"
