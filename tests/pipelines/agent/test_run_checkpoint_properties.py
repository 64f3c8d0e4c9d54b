"""Any run, saved anywhere, goes on as if nothing had been; where it cannot, that is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.run_settings import Backoff
from bargein.pipelines.agent.saved_errors import UnfinishedStream
from bargein.sim.effects.bus import EffectKind
from tests.pipelines.agent.checkpoint_kit import Before, Program, following, played, records, resumed, state, told
from tests.pipelines.agent.checkpoint_programs import NOTE
from tests.pipelines.agent.memory_kit import GOLDEN, OLD, RememberingWorld
from tests.pipelines.agent.run_kit import MS, Tool, World
from tests.pipelines.agent.test_run_properties import programs

MORE = st.fixed_dictionaries({"memory": st.booleans(), "backoff": st.booleans(), "notes": st.booleans()})
PLACES = 6
"""Of each run so many are tried; every place of 2,500 runs was."""


def program_of(drawn: dict[str, Any], more: dict[str, bool]) -> Program:
    """The world that was drawn."""

    def build(before: Before) -> World:
        script = before.rest(*drawn["script"])
        world = RememberingWorld(*script, old=before.old(*OLD), **drawn["settings"])
        if not more["memory"]:
            world.agent.remembers = None
        if more["backoff"]:
            world.agent.settings.backoff = Backoff(20 * MS, 30 * MS)
        for name in ("add", "sub"):
            world.tool(name, lambda request: [request.name, request.arguments], 50 * MS)
        world.bus.serve(NOTE, Tool(world.clock, "noted", 30 * MS))

        def resolve(moment: Moment) -> None:
            if drawn["resolution"] is not None:
                moment.resolve(drawn["resolution"])

        def note(moment: Moment) -> None:
            if more["notes"] and moment.effect is not None and moment.effect.kind is EffectKind.TOOL_CALL:
                moment.dispatch(EffectKind.CUSTOM, NOTE, {"of": moment.effect.key})

        world.on(At.INVALID_CALL, resolve)
        world.on(At.JUDGE_OUTCOME, note)
        return world

    return Program(build, lambda world: world.runs.spawn(world.agent, "hello", streamed=drawn["streamed"]))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(programs(), MORE)
def test_any_run_goes_on_from_anywhere_as_if_nothing_had_been(drawn: dict[str, Any], more: dict[str, bool]) -> None:
    program = program_of(drawn, more)
    world, places = played(program)
    for place in places[:: len(places) // PLACES + 1]:
        if place.streaming:
            with pytest.raises(UnfinishedStream, match=rf"effect {place.streaming[0][0]} "):
                resumed(program, place)
            continue
        again = resumed(program, place, place.at_us)
        assert records(again.bus.bus.log, program) == records(following(world, place), program)
        assert told(again, program) == told(world, program, place.rows)
        assert state(again, program) == state(world, program)
        assert isinstance(again, RememberingWorld)
        assert isinstance(world, RememberingWorld)
        assert again.store.load(GOLDEN) == world.store.load(GOLDEN)
