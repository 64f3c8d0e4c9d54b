"""Documents that somebody has cut, edited or made up: refused, or read as what they say, and nothing else happens."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from json import loads
from pathlib import Path
from typing import Any

import pytest

from bargein.pipelines.agent import run_checkpoint, saved_values
from bargein.pipelines.agent.answers import StreamError
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.edits import RemoveEdit, TextEdit
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_restore import load_runs, validate_runs
from bargein.pipelines.agent.run_settings import Agent, Backoff
from bargein.pipelines.agent.run_state import InvalidCall, PendingEffect, Run, Turn
from bargein.pipelines.agent.saved_errors import CheckpointError, NotACheckpoint
from bargein.pipelines.agent.saved_graph import AGENT, EFFECT, INVALID, RUN, TURN, save_runs
from tests.pipelines.agent.checkpoint_kit import destination, full_world, sealed, wait
from tests.pipelines.agent.run_kit import BUSY, MS, World, call, calls, named

WRONG: tuple[Any, ...] = (
    *(None, True, -2, 0, 7, 2**70, -(2**70), 0.5, "", "x", "r1:0", [], [[]], {}, {"$": 1}, {"$": "os.system"}),
    *({"$": "bytes", "base64": "QQ=="}, {"$": "Phase", "is": "Assembling"}, {"$": "TextPart", "text": "x"}),
    *({"$": "mapping", "of": [["$", 1]]}, {"$": "mapping", "of": [[{}, 1]]}, {"$": "Purpose", "is": []}),
)


@cache
def rich() -> bytes:
    """A document with an entity of every kind: runs that are served, held, streamed, broken, refused a call, edited."""
    world = full_world()
    broken = [(MS, TextDelta("Lost")), (2 * MS, StreamError(BUSY)), (3 * MS, StreamEnd())]
    wrong = [named("nope", MS, 0, "{}"), (2 * MS, StreamEnd())]
    world.model.script += [broken, wrong, calls(call("add"))]
    world.agent.settings.backoff = Backoff(1_000 * MS, 1_000 * MS)
    world.runs.spawn(world.agent, "Break.", streamed=True)
    world.clock.run(world.clock.now + 5 * MS)
    world.runs.spawn(world.agent, "Err.", streamed=True)
    world.clock.run(world.clock.now + 5 * MS)
    edited = world.runs.live[3].turns[-1]
    ids = world.runs.live[3].history.ids(0)
    edited.edits += [TextEdit(ids[0], "x"), RemoveEdit(ids[0])]
    raw = save_runs(world.runs).to_bytes()
    kinds = {entity["kind"] for entity in loads(raw)["entities"]}
    assert kinds == set(KINDS)
    return raw


def serving() -> World:
    """A world that serves what the document needs."""
    world = World()
    world.tool("add")
    return world


# -- cut and edited -------------------------------------------------------------------------------------------------


def test_a_document_that_was_cut_off_is_refused_wherever_it_was() -> None:
    raw = rich()
    for end in [*range(0, len(raw) - 1, 37), len(raw) - 2]:
        with pytest.raises(NotACheckpoint):
            RunCheckpoint.from_bytes(raw[:end])


def test_a_document_of_which_one_byte_is_another_is_refused() -> None:
    raw = rich()
    for at in range(0, len(raw) - 1, 53):
        changed = bytearray(raw)
        changed[at] ^= 1
        with pytest.raises(CheckpointError):
            RunCheckpoint.from_bytes(bytes(changed))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "a, character 1: Expecting value"),
        (b"\xff\n", "a: found bytes that are no UTF-8"),
        (b'{"bargein_runs":NaN}', "a: found NaN"),
        (b'{"bargein_runs":2,"bargein_runs":2}', 'a: found the key "bargein_runs" twice'),
        (b'{"bargein_runs":' + b"9" * 5000 + b"}", "a: Exceeds the limit"),
        (b'{"bargein_runs":2,"at_us":1e999}', "a: found the number 1e999, which is out of range"),
        (b'{"bargein_runs":' + b"[" * 5000 + b"]" * 5000 + b"}", "a: it is nested more than 100 deep"),
        (b'{"bargein_runs":2}\n{}', "a:2: found 2 bytes after its end; accepted is one line"),
        (b'{"bargein_runs":2}\n', "a: the document does not fit its check; it was cut off or edited"),
    ],
)
def test_what_is_no_document_is_refused_with_the_reason(raw: bytes, said: str) -> None:
    with pytest.raises(NotACheckpoint) as caught:
        RunCheckpoint.from_bytes(raw, "a")
    assert str(caught.value).startswith(said)


def test_the_same_runs_give_the_same_bytes_and_they_are_read_as_what_they_were() -> None:
    checkpoint = RunCheckpoint.from_bytes(rich())
    assert checkpoint.to_bytes() == rich()
    world = serving()
    wait(world, checkpoint.at_us)
    load_runs(checkpoint, world.runs)
    assert save_runs(world.runs).to_bytes() == rich()


# -- made up --------------------------------------------------------------------------------------------------------


def paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in plain data."""
    if path:
        yield path
    inner = data.items() if type(data) is dict else enumerate(data) if type(data) is list else ()
    for key, each in inner:
        yield from paths(each, (*path, key))


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def says_the_same(read: Any, written: Any) -> bool:
    """Whether what was read back has all that was written; what holds nothing may be left out."""
    if type(written) is dict and type(read) is dict:
        return all(says_the_same(read.get(name), written.get(name)) for name in {**written, **read})
    if type(written) is list and type(read) is list:
        return len(read) == len(written) and all(map(says_the_same, read, written))
    return (type(read) is type(written) and bool(read == written)) or not (read or written)


def places(kind: str) -> list[tuple[Any, ...]]:
    """Every place in entities of a kind, once of those that have the same fields."""
    seen: dict[str, tuple[Any, ...]] = {}
    for position, entity in enumerate(loads(rich())["entities"]):
        if entity["kind"] == kind:
            for path in paths(entity):
                seen.setdefault(str([each for each in path if type(each) is str]), (position, *path))
    return list(seen.values())


KINDS = ("handler", "agent", "run", "message", "part", "turn", "edit", "invalid_call", "effect")
CASES = 100
"""How many of each kind are tried; all of them, some 8,000, were."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_value_anywhere_is_refused_or_read_as_what_it_says(kind: str) -> None:
    cases = [(path, wrong) for path in places(kind) for wrong in WRONG]
    world = destination()
    before = save_runs(world.runs).to_bytes()
    refused = 0
    for path, wrong in cases[:: len(cases) // CASES + 1]:
        data = loads(rich())
        at(data["entities"], path[:-1])[path[-1]] = deepcopy(wrong)
        try:
            checkpoint = RunCheckpoint.from_bytes(sealed(data))
            validate_runs(checkpoint, world.runs)
            other = serving()
            load_runs(checkpoint, other.runs)
        except CheckpointError:
            refused += 1
        else:
            read = [each for each in save_runs(other.runs).entities if each["kind"] != "handler"]
            stated = [each for each in data["entities"] if each["kind"] != "handler"]
            assert says_the_same(read, stated), (path, wrong)
    assert save_runs(world.runs).to_bytes() == before
    assert refused


# -- what a document can make happen --------------------------------------------------------------------------------


def test_a_document_can_have_nothing_made_but_the_values_of_a_run() -> None:
    """Of every class that a name can stand for: it is a frozen or plain dataclass of the run's own modules."""
    for name, kind in saved_values._CLASSES.items():
        assert (is_dataclass(kind), kind.__name__) == (True, name)
        assert kind.__module__.startswith(("bargein.pipelines.agent.", "bargein.sim.effects."))
    assert all(issubclass(kind, Enum) for kind in saved_values._CHOICES.values())
    unsafe = ("Run", "Turn", "PendingEffect", "InvalidCall", "Agent", "History", "Held", "HeldMessage", "BinaryAssets")
    assert [name for name in unsafe if name in saved_values._CLASSES] == []


@pytest.mark.parametrize(
    "name", ["os.system", "subprocess.Popen", "eval", "builtins.eval", "Run", "__class__", "object"]
)
def test_a_name_of_something_else_is_refused_and_nothing_is_imported_or_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = loads(rich())
    data["entities"][-1]["payload"] = {"$": name, "args": "touch x", "command": "x"}
    checkpoint = RunCheckpoint.from_bytes(sealed(data))
    world = serving()
    loaded = dict.fromkeys(sys.modules)

    def no_import(*given: Any, **more: Any) -> Any:
        raise AssertionError(f"imported {given[0]}")

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", no_import)
        with pytest.raises(CheckpointError) as caught:
            load_runs(checkpoint, world.runs)
    assert str(caught.value).endswith(
        f"payload: found {name!r}, which is no value of a run; nothing of that name is known here"
    )
    assert dict.fromkeys(sys.modules) == loaded


def test_every_field_of_a_run_is_saved_or_made_again() -> None:
    """A field that is added to one of these classes has to be thought of."""
    made_again: dict[type[Any], tuple[str, ...]] = {
        Agent: (),
        Run: ("seq", "agent", "history", "turns", "effects", "host"),
        Turn: ("edits", "lookups", "request", "fold", "invalid", "batch", "assistant", "results"),
        PendingEffect: ("kind", "wake", "turn", "parent", "dispatch", "reserved", "on_landed", "release_at_us"),
        InvalidCall: ("block",),
    }
    for (kind, others), saved in zip(made_again.items(), (AGENT, RUN, TURN, EFFECT, INVALID), strict=True):
        assert sorted([*saved, *others]) == sorted(field.name for field in fields(kind))


def test_a_file_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.json"
    with pytest.raises(NotACheckpoint, match="there is no such file; accepted is a checkpoint of agent runs"):
        RunCheckpoint.from_file(path)
    path.write_bytes(rich())
    assert RunCheckpoint.from_file(path).to_bytes() == rich()
    monkeypatch.setattr(run_checkpoint, "MAX_BYTES", len(rich()) - 1)
    with pytest.raises(NotACheckpoint, match=rf"{path}: it has more than {len(rich()) - 1} bytes"):
        RunCheckpoint.from_file(path)
