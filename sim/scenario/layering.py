"""The layers that a program puts around the handlers of its sessions, and what it declares of them.

A `Plan` is given a function that makes them; it is asked once for each session, with the session's clock, so that
sessions share no state (run contract, section 9.6). A log names them, so that it is replayed within the same ones
(section 10). Left out: what a layer decides (``sim.effects.decisions``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bargein.pipelines.response_stream import model_key
from bargein.pipelines.s2s_connection import live_key
from bargein.sim.effects.bus import EffectBus
from bargein.sim.effects.decisions import Layer
from bargein.sim.effects.identity import memory_key, tool_key
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.kernel.clock import Clock
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.suggest import unknown

__all__ = ["Layering", "MakeLayers"]

MakeLayers = Callable[[Clock], Mapping[str, Sequence[Layer]]]
"""Makes the layers of one session: by handler key or by a tool's name, the outermost first. The clock is the
session's; on it a layer may arrange to answer an approval later."""


class Layering:
    """The layers of a scenario's sessions.

    Args:
        make: makes those of one session; what it declares has to be the same each time.
    """

    def __init__(self, scenario: Scenario, make: MakeLayers) -> None:
        self._keys = _keys(scenario)
        self._live = None if scenario.s2s is None else scenario.agent.model
        self._make = make
        self._declared: dict[str, list[str]] | None = None

    def around(self, bus: EffectBus) -> LayeredBus:
        """``bus`` seen through the layers of a new session.

        Raises:
            ScenarioError: they stand around something that the scenario has not, or are none.
        """
        layered = LayeredBus(bus)
        for key, layers in self._for_session(bus.clock).items():
            layered.wrap(key, *layers)
        return layered

    @property
    def declared(self) -> Mapping[str, list[str]]:
        """The names of the layers around each handler, the outermost first.

        Where no session was opened yet, they are made once for nobody, with a clock on which nothing happens.

        Raises:
            ScenarioError: as for `around`.
        """
        if self._declared is None:
            self._for_session(Clock())
        assert self._declared is not None
        return self._declared

    @property
    def hooks(self) -> list[str]:
        """Their names as a program declares its hooks: handler by handler, the outermost first."""
        return [name for names in self.declared.values() for name in names]

    def _for_session(self, clock: Clock) -> dict[str, tuple[Layer, ...]]:
        made = self._make(clock)
        if not isinstance(made, Mapping):
            raise ScenarioError(
                f"layers: the function gave {_kind(made)}; accepted is a mapping from handler keys or names of tools "
                "to their layers"
            )
        found: dict[str, tuple[Layer, ...]] = {}
        wrong = []
        for name, layers in made.items():
            key = self._keys.get(name)
            fault = self._unknown(name) if key is None else _fault(layers)
            if fault is None and key in found:
                fault = f"{key} has layers already; accepted is either its key or the tool's name"
            if fault is not None:
                wrong.append(f"layers: {name}: {fault}")
            elif key is not None:
                found[key] = tuple(layers)
        if wrong:
            raise ScenarioError(*wrong)
        ordered = {key: found[key] for key in dict.fromkeys(self._keys.values()) if found.get(key)}
        self._declare({key: [layer.name for layer in layers] for key, layers in ordered.items()})
        return ordered

    def _unknown(self, name: object) -> str:
        if self._live is not None and name in (live_key(self._live), model_key(self._live)):
            return (
                "a live provider answers on one connection, which is no single request; accepted in speech to speech "
                "are layers around tools"
            )
        return unknown("handler", str(name), self._keys)

    def _declare(self, names: dict[str, list[str]]) -> None:
        if self._declared is None:
            self._declared = names
        elif names != self._declared:
            before = self._declared
            raise ScenarioError(
                f"layers: the function gave {names}, and {before} before; accepted are the same for each session"
            )


def _keys(scenario: Scenario) -> dict[str, str]:
    """By every name that layers may stand under the key of the handler."""
    return dict(_named(scenario))


def _named(scenario: Scenario) -> Iterator[tuple[str, str]]:
    keys = [] if scenario.s2s is not None else [model_key(label) for label in (scenario.agent.model, *scenario.models)]
    if scenario.memory is not None:
        keys.append(memory_key("agent"))
    yield from ((key, key) for key in keys)
    tools = [(spec.name, tool_key("agent", spec.name, 0)) for spec in scenario.specs]
    if scenario.remote is not None:
        taken = [name for name, _ in tools]  # the session does not take such a tool of the agent's
        tools += [
            (each.name, tool_key("link", each.name, 0)) for each in scenario.remote.specs if each.name not in taken
        ]
    for name, key in tools:
        yield key, key
        yield name, key


def _fault(layers: Any) -> str | None:
    """Why these are no layers."""
    if isinstance(layers, str) or not isinstance(layers, Sequence):
        return f"found {_kind(layers)}; accepted is a list of layers, the outermost first"
    for layer in layers:
        if not isinstance(layer, Layer):
            return f"found {_kind(layer)} in the list; accepted is a bargein.sim.Layer"
        if type(layer.name) is not str or not layer.name:
            return f"a layer is called {layer.name!r}; accepted is a text that is not empty"
    return None


def _kind(value: object) -> str:
    return f"a {type(value).__name__}" if not isinstance(value, type) else f"the class {value.__name__}"
