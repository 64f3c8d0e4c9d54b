"""Which id a call has on the wire: the provider's own where it can serve, and one made of ours where it cannot.

Providers refuse an empty id and two calls of one id, and both come from real ones; the internal id is always there
and never reused. An encoder keeps one `WireIds` for each request. Left out: remembering; the same conversation
gives the same ids each time.
"""

from __future__ import annotations

from collections.abc import Callable

from bargein.pipelines.agent.messages import ToolCall

__all__ = ["WireIds", "nine_characters", "plain"]


def plain(call_id: str) -> str:
    """An id of letters, digits and underscores, which every provider but Mistral takes: ``t2_0``."""
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in call_id)


def nine_characters(call_id: str) -> str:
    """An id of nine letters and digits, as Mistral wants them: ``t00020000`` for ``t2.0``."""
    epoch, _, number = call_id.removeprefix("t").partition(".")
    return f"t{epoch:0>4}{number or '0':0>4}"


class WireIds:
    """The ids of one request's calls.

    Args:
        make: an id for a call whose own cannot serve.
    """

    __slots__ = ("_by_call", "_make", "_taken")

    def __init__(self, make: Callable[[str], str] = plain) -> None:
        self._make = make
        self._by_call: dict[str, str] = {}
        self._taken: set[str] = set()

    def give(self, call: ToolCall) -> str:
        """The id of a call that is asked."""
        own = call.provider_id
        chosen = own if own and own not in self._taken else self._make(call.id)
        self._taken.add(chosen)
        self._by_call[call.id] = chosen
        return chosen

    def of(self, call_id: str) -> str:
        """The id of a call that is answered; made of ours where it was never asked, so that the rules find it."""
        return self._by_call.get(call_id) or self._make(call_id)
