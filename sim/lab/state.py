"""The whole state of a session as readable plain data, part by part: what a checkpoint shows and a resume verifies.

Every part is read from the objects themselves, field by field, so that nothing can be forgotten that a stage begins
to keep. An object that two parts hold is shown where it is met first, and named by that place from then on. What does
not change in a session (settings, declarations, recordings, the script) is named, not shown; what cannot be shown (a
function, a waiting process) stands as its name with the plain values it holds on to.

Left out: making objects of it again; a resumed session comes to its state by running there.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Any

import simpy

from bargein.models.clips import RenderedClips
from bargein.models.recordings import Recording
from bargein.models.tts import Piece
from bargein.pipelines import settings
from bargein.pipelines.agent.request import AgentSettings
from bargein.pipelines.tools.registry import RegisteredTool, ToolRegistry
from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.effects.bus import Effect, EffectBus
from bargein.sim.effects.dispatches import Dispatch
from bargein.sim.effects.identity import content_digest, written
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.recording import HandlersClock
from bargein.sim.kernel.clock import Clock, Task, Timer
from bargein.sim.kernel.streams import Stream
from bargein.sim.kernel.timeline import Timeline
from bargein.sim.scenario import model as scenario_model
from bargein.sim.scenario.build import Opened

__all__ = ["digests_of", "state_of"]

_PLAIN = (bool, int, str, float, type(None))
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.BuiltinMethodType, type)

_NAMED: dict[type, Callable[[Any], Any]] = {
    Recording: lambda it: {"recording": it.text, "content": it.content[:16]},
    Piece: lambda it: {"speech": "".join([word for word, _ in it.words]), "samples": it.length},
    RegisteredTool: lambda it: {"tool": it.spec.name},
    ToolSpec: lambda it: {"tool": it.name},
    Stream: lambda it: {"stream": it.name, "drawn": it.drawn},
    Timer: lambda it: {"timer": it.at_us, "armed": it.armed},
    Dispatch: lambda it: {"asked": it.ask.key, "served": it.served, "withheld": it.withheld, "told": not it.running},
}
"""How an object that something else accounts for, or that never changes, is named."""
_APART: tuple[type, ...] = (
    Clock,
    HandlersClock,
    Timeline,
    EffectBus,
    LayeredBus,
    ToolRegistry,
    RenderedClips,
    AgentSettings,
)
"""Objects of which the name of the type says enough."""


def state_of(opened: Opened, own: Collection[str] = ()) -> dict[str, Any]:
    """Every part of a session as it stands now, by name.

    Args:
        own: tools of the program's own, whose bodies are its affair.
    """
    session, shown = opened.session, _Shown()
    engine = session.engine
    desk = engine._desk
    parts: dict[str, Any] = {
        "context": session.conversation.context,
        "effects": [effect for effect in session.bus.log if effect.running],
        "caller": opened.caller,
        "idempotency": desk.store,
        "orphans": desk.recent,
        "running": desk.running,
        "late_notes": desk.mailbox,
        "confirmations": desk.confirmations,
        "responses": desk.open,
        "tools": engine,
        "playout_book": session.book,
        "playout": session.playout,
        "speech": session.tts,
        "turns": session.turns,
        "hearing": session.audio_in,
        "conversation": session.conversation,
        "run": session.runner,
        "metrics": session.recorder,
        "session": session,
        "model": opened.model,
        "bodies": {name: body for name, body in opened.tools.items() if name not in own},
        "voice": opened.tts,
    }
    if opened.others:
        parts["other_models"] = opened.others
    shown.reserve(parts)
    state = {"timeline": {"events": len(session.timeline), "digest": session.timeline.digest()}}
    state.update({name: shown.part(value, name) for name, value in parts.items()})
    state["timers"] = shown.clock(session.clock)
    streams = opened.streams
    state["streams"] = {name: stream.drawn for name, stream in sorted(streams._streams.items())}
    return state


def digests_of(state: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each part."""
    return {name: content_digest(written(part))[:16] for name, part in state.items()}


def _slots(value: Any) -> tuple[str, ...]:
    return _class_slots(type(value))  # type: ignore[arg-type]  # a type is hashable


@cache
def _class_slots(cls: type) -> tuple[str, ...]:
    """The slots of a class and of those it stands on."""
    names: list[str] = []
    for each in reversed(cls.__mro__):
        slots = each.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return tuple([name for name in names if name not in ("__dict__", "__weakref__")])


def _is_apart(value: Any) -> bool:
    return _is_class_apart(type(value))  # type: ignore[arg-type]  # a type is hashable


@cache
def _is_class_apart(cls: type) -> bool:
    """Whether objects of this class are named only: what is set before a session and shared by many."""
    if issubclass(cls, _APART):
        return True
    module = cls.__module__
    if issubclass(cls, simpy.Event | types.FunctionType | types.MethodType | partial):
        return False
    if module == settings.__name__ or module.startswith(scenario_model.__name__.rpartition(".")[0]):
        return is_dataclass(cls)
    return module.split(".")[0] not in ("bargein", "builtins", "collections", "types")


class _Shown:
    """What was shown so far, by object, so that each is shown once."""

    def __init__(self) -> None:
        self._places: dict[int, str] = {}
        self._kept: list[Any] = []  # an address means the object only as long as that is alive

    def reserve(self, parts: Mapping[str, Any]) -> None:
        """Have each part shown under its own name, whoever else holds on to it."""
        self._places.update({id(value): name for name, value in parts.items()})
        self._kept.append(list(parts.values()))

    def part(self, value: Any, name: str) -> Any:
        """One of the parts."""
        if type(value) in (dict, list):
            return self.show(value, name)
        return self._fields_of(value, name)

    def show(self, value: Any, place: str) -> Any:
        """``value`` as plain data, met at ``place``."""
        cls = type(value)
        if cls in _PLAIN:
            return value
        if cls is tuple or cls is list or cls is deque:
            return [
                item if type(item) in _PLAIN else self.show(item, f"{place}[{at}]") for at, item in enumerate(value)
            ]
        if isinstance(value, Enum):
            return str(value)
        if cls is bytes:
            return value.hex()
        named = _NAMED.get(cls)
        if named is not None:
            return named(value)
        if isinstance(value, Mapping):
            return self._mapping(value, place)
        if isinstance(value, set | frozenset):
            return sorted([self.show(item, place) for item in value], key=repr)
        if isinstance(value, tuple):
            return [self.show(item, f"{place}[{at}]") for at, item in enumerate(value)]
        function = self._function(value, place)
        if function is not None:
            return function
        if _is_apart(value):
            return f"<{cls.__name__}>"
        return self._object(value, cls, place)

    def _mapping(self, value: Mapping[Any, Any], place: str) -> Any:
        if all(type(key) is str for key in value):
            return {key: self.show(item, f"{place}.{key}") for key, item in value.items()}
        return [
            [self.show(key, place), self.show(item, f"{place}[{at}]")] for at, (key, item) in enumerate(value.items())
        ]

    def _function(self, value: Any, place: str) -> Any:
        """A function by its name and the plain values it holds on to; ``None`` where it is none."""
        if isinstance(value, types.MethodType):
            return f"{value.__func__.__qualname__} of {self.name(value.__self__)}"
        if isinstance(value, partial):
            return {"call": self._function(value.func, place), "with": [self.show(each, place) for each in value.args]}
        if not isinstance(value, _FUNCTIONS):
            return None
        cells = getattr(value, "__closure__", None) or ()
        held = [cell.cell_contents for cell in cells if type(cell.cell_contents) in _PLAIN]
        return {"call": value.__qualname__, "holds": held} if held else value.__qualname__

    def _object(self, value: Any, cls: type, place: str) -> Any:
        known = self._places.get(id(value))
        if known is not None:
            return f"<{known}>"
        self._places[id(value)] = place
        self._kept.append(value)
        if isinstance(value, simpy.Event):
            return f"<{getattr(value, 'label', None) or getattr(value, 'title', cls.__name__)}>"
        if isinstance(value, Effect):
            return value.as_dict()
        return self._fields_of(value, place)

    def _fields_of(self, value: Any, place: str) -> dict[str, Any]:
        """Every field of an object but those that hold what is named only."""
        data: dict[str, Any] = {}
        own = getattr(value, "__dict__", {})
        for name in (*_slots(value), *own):
            item = getattr(value, name, None)
            if not _is_apart(item):
                data[name.lstrip("_")] = self.show(item, f"{place}.{name.lstrip('_')}")
        return data

    def name(self, value: Any) -> str:
        """What an object is called: the place at which it was shown, else its type."""
        return self._places.get(id(value), type(value).__name__)

    def clock(self, clock: Clock) -> dict[str, Any]:
        """What is still to happen, in its order, and who waits."""
        coming = []
        for at_us, rank, _, event in sorted(clock._queue, key=lambda entry: entry[:3]):
            if type(event) is not Timer:
                coming.append([at_us, int(rank), self.show(event, "timers")])
            elif event.armed:
                argument = event.argument
                told = argument if type(argument) in _PLAIN else self.name(argument)
                coming.append([at_us, int(rank), self._function(event.function, "timers"), told])
        tasks = [f"{task.title} waits for {task.waits_for()}" for task in clock.tasks if isinstance(task, Task)]
        ties = None if clock._ties is None else clock._ties.drawn
        return {"now_us": clock.now, "events": clock.processed, "ties": ties, "coming": coming, "waiting": tasks}
