"""The quirks that are the same on every wire, applied to a scripted answer's deltas before they become bytes.

Left out: those that are a matter of spelling (``no_arguments`` and ``usage_chunk`` on each wire), which its `Answer`
does itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bargein.pipelines.agent.deltas import CallDelta, Delta, TextDelta

__all__ = ["with_quirks"]


def with_quirks(deltas: Sequence[Delta], quirks: frozenset[str]) -> list[Delta]:
    """The deltas as a provider with these quirks sends them."""
    said = list(deltas)
    if "text_after_call" in quirks and any(type(each) is CallDelta for each in said):
        said.sort(key=lambda each: type(each) is TextDelta)  # stable: all else keeps its order
    ids = {each.index: each.id for each in said if type(each) is CallDelta and each.id}
    names = {each.index: each.name for each in said if type(each) is CallDelta and each.name}
    bare = _without_arguments(said) if "no_arguments" in quirks else frozenset()
    return [piece for each in said for piece in _pieces(each, quirks, ids, names, bare)]


def _without_arguments(said: Sequence[Delta]) -> frozenset[int]:
    """The calls whose arguments are an empty object."""
    texts: dict[int, str] = {}
    for each in said:
        if type(each) is CallDelta:
            texts[each.index] = texts.get(each.index, "") + each.arguments
    return frozenset(index for index, text in texts.items() if text == "{}")


def _pieces(
    each: Delta, quirks: frozenset[str], ids: dict[int, str], names: dict[int, str], bare: frozenset[int]
) -> list[Delta]:
    if type(each) is not CallDelta:
        return [each]
    fragment = replace(each, arguments="") if each.index in bare else each
    if fragment.index in bare and not fragment.name:
        return []
    if "repeated_ids" in quirks:
        fragment = replace(fragment, id=ids[fragment.index], name=names[fragment.index])
    if "same_ids" in quirks and fragment.id:
        fragment = replace(fragment, id=ids[min(ids)])
    if "empty_ids" in quirks and fragment.id is not None:
        fragment = replace(fragment, id="")
    whole = [fragment]
    if "split_head" in quirks and fragment.name:
        whole = [
            CallDelta(fragment.index, id=fragment.id),
            CallDelta(fragment.index, name=fragment.name),
            CallDelta(fragment.index, arguments=fragment.arguments),
        ]
    if "index_gaps" in quirks:
        return [replace(piece, index=2 * piece.index) for piece in whole]
    return list(whole)
