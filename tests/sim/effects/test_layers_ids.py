"""The ids of effects run out while something waits for its turn or its approval."""

from __future__ import annotations

import pytest

from bargein.sim.effects.bus import LAST_ID, EffectKind
from bargein.sim.effects.layers import Approval, Ask, Layer, Suspend
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.cancel import Cause
from tests.pipelines.agent.run_kit import S
from tests.sim.effects.test_layers_serving import Desk


class Waits(Layer):
    """Has everything wait for one approval."""

    def __init__(self, approval: Approval) -> None:
        self.approval = approval

    def before(self, ask: Ask) -> Suspend:
        return Suspend(self.approval)


def test_what_waits_for_a_place_as_the_ids_are_used_up_is_refused_in_its_turn_and_not_recorded() -> None:
    desk = Desk(capacity=1)
    desk.bus.bus.next_id = LAST_ID - 2
    for name in "abcd":
        desk.ask(name)
    desk.clock.run()
    assert [effect.id for effect in desk.bus.bus.log] == [LAST_ID - 2, LAST_ID - 1]
    refused = failed(ReportKind.REQUEST, "there are no more ids for effects").value
    assert desk.told == [(S, "a"), (2 * S, "b"), (2 * S, refused), (2 * S, refused)]
    assert (desk.bus.bus.next_id, desk.bus.bus.running) == (LAST_ID, 0)


@pytest.mark.parametrize("approved", [True, False])
def test_what_waits_for_an_approval_as_the_ids_are_used_up_is_not_recorded_either(approved: bool) -> None:
    desk = Desk()
    approval = Approval()
    desk.bus.serve("checked", desk.tool, Waits(approval), capacity=1)
    desk.bus.bus.next_id = LAST_ID - 1
    checked = desk.bus.dispatch(EffectKind.CUSTOM, "checked", "late", scope="s", on_landed=desk.hear)
    desk.ask("last")
    if approved:
        approval.approve()
    else:
        checked.cancel(Cause.HANG_UP)
    desk.clock.run()
    refused = failed(ReportKind.REQUEST, "there are no more ids for effects").value
    assert desk.told == [(0, refused if approved else Cause.HANG_UP), (S, "last")]
    assert [effect.id for effect in desk.bus.bus.log] == [LAST_ID - 1]
    assert (checked.effect, desk.bus.bus.next_id, desk.bus.bus.running) == (None, LAST_ID, 0)
