"""Every vendor's bytes, with every quirk it has, read by its own adapter."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.models.llm_stream import call_deltas
from bargein.models.providers.adapter import EventDecoder
from bargein.models.providers.catalogue import WIRES, adapter
from bargein.models.providers.errors import WireError
from bargein.models.vendors.answer import QUIRKS, Thought
from bargein.models.vendors.quirks import with_quirks
from bargein.models.vendors.wire import ScriptedWire, answer_class, spell
from bargein.pipelines.agent.assembly import Response, ResponseAssembler
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import Delta, StreamEnd, TextDelta
from bargein.sim.scenario.script import Call

CELLS = [(wire, quirk) for wire in WIRES for quirk in ("", *sorted(answer_class(wire).SUPPORTED))]


def _bodies(wire: str, *quirks: str, failure: str | None = None, thinks: bool = True) -> list[bytes]:
    """An answer of text, thought, a call with arguments and one without."""
    script = [Call("look", {"where": "Köln ☃", "n": 1.5}), Call("now")]
    pieces = call_deltas(script, 0, ScriptedWire(wire, "m", quirks).fragments(5, 5))
    calls: list[Delta] = [delta for batch in pieces for delta in batch]
    said = with_quirks([TextDelta("Let me "), TextDelta("look, größer."), *calls], frozenset(quirks))
    answer = answer_class(wire)(wire, 1, "m", frozenset(quirks), 10)
    return spell(answer, [*([Thought("Hm.")] if thinks else []), *said], StreamEnd("tool_calls"), failure)


def _read(wire: str, stream: list[bytes]) -> tuple[Response, StreamEnd]:
    decoder: EventDecoder = adapter(wire, "m").decoder()
    assembler = ResponseAssembler()
    *deltas, end = [item for piece in stream for item in decoder.feed(piece)] + decoder.finish()
    assert isinstance(end, StreamEnd)
    for delta in deltas:
        assert not isinstance(delta, StreamEnd)
        assembler.feed(delta)
    return assembler.finish(1, Context()), end


@pytest.mark.parametrize(("wire", "quirk"), CELLS)
def test_an_answer_is_understood_whatever_the_vendor_does(wire: str, quirk: str) -> None:
    response, end = _read(wire, _bodies(wire, *([quirk] if quirk else [])))

    assert response.text == "Let me look, größer."
    assert [(call.id, call.name, getattr(call, "arguments", None)) for call in response.calls] == [
        ("t1.0", "look", {"where": "Köln ☃", "n": 1.5}),
        ("t1.1", "now", {}),
    ]
    assert (end.reason, end.usage["input_tokens"]) == ("tool_calls", 10)


def test_the_ids_are_those_that_the_vendor_gave() -> None:
    def ids(wire: str, *quirks: str) -> list[str]:
        return [call.provider_id for call in _read(wire, _bodies(wire, *quirks))[0].calls]

    assert ids("openai") == ids("anthropic") == ids("openai_responses") == ["call_0", "call_1"]
    assert ids("openai", "empty_ids") == ids("gemini") == ["", ""]
    assert ids("openai", "same_ids") == ids("anthropic", "same_ids") == ["call_0", "call_0"]


@pytest.mark.parametrize("quirk", QUIRKS)
def test_every_quirk_changes_the_bytes(quirk: str) -> None:
    wires = [wire for wire in WIRES if quirk in answer_class(wire).SUPPORTED]

    assert wires
    assert all(b"".join(_bodies(wire, quirk)) != b"".join(_bodies(wire)) for wire in wires)


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_any_cut_of_any_wire_gives_the_same_answer(wire: str, data: st.DataObject) -> None:
    stream = b"".join(_bodies(wire))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=30)))

    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert _read(wire, pieces) == _read(wire, [stream])


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_cut_off_anywhere_is_an_error_or_whole(wire: str) -> None:
    stream = b"".join(_bodies(wire))
    whole = _read(wire, [stream])[0]
    failures = 0
    for at in range(0, len(stream), 7):
        try:
            assert _read(wire, [stream[:at]])[0] == whole
        except WireError:
            failures += 1

    assert failures > len(stream) // 7 * 3 // 4


@pytest.mark.parametrize("wire", WIRES)
def test_a_failure_in_mid_stream_comes_out_as_the_vendor_said_it(wire: str) -> None:
    with pytest.raises(WireError) as caught:
        _read(wire, _bodies(wire, failure="Overloaded, sorry"))

    assert caught.value.provider == adapter(wire, "m").provider
    assert caught.value.what.startswith("the provider reports ")
    assert caught.value.what.endswith(": Overloaded, sorry")
