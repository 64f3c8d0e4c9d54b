"""A source is drawn from while its queue has room, and a step that could not come to it makes none."""

from __future__ import annotations

from collections import Counter

from bargein.sim.effects.bus import Effect
from bargein.sim.effects.streams import CHECKS_PER_EFFECT, STREAM_WORK_PER_STEP
from tests.sim.effects.test_streams import DONE, Reply, Studio


def test_a_full_queue_that_the_budget_has_left_behind_stays_as_it_is() -> None:
    drawn: Counter[int] = Counter()

    def source(effect: Effect) -> Reply:
        for number in range(1_000):
            drawn[effect.id] += 1
            yield number
        return DONE

    studio = Studio(by_hand=True)
    studio.serve(source, capacity=CHECKS_PER_EFFECT)
    served = STREAM_WORK_PER_STEP // CHECKS_PER_EFFECT
    for _ in range(served + 1):
        studio.ask()
    assert set(drawn.values()) == {CHECKS_PER_EFFECT + 1}
    assert studio.streams.step()
    found = [drawn[id] for id in range(served + 1)]
    assert found == [2 * CHECKS_PER_EFFECT + 1] * served + [CHECKS_PER_EFFECT + 1]
    assert studio.streams.step()
    assert drawn[served] == 2 * CHECKS_PER_EFFECT + 1
