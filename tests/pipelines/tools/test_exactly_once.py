"""Whatever the caller does and when, each side effect's result is told exactly once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.messages import assistant
from bargein.pipelines.tools.results import interrupted_message
from bargein.sim.kernel.clock import Order

INSTANTS = st.integers(0, 8)
ROUND = st.fixed_dictionaries(
    {
        "at": INSTANTS,
        "calls": st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["book", "look"])), min_size=1, max_size=3),
        "end": st.sampled_from(["deliver", "cancel", "discard", "speculate"]),
        "ends_after": st.integers(0, 6),
    }
)


@settings(max_examples=150, deadline=None)
@given(
    rounds=st.lists(ROUND, min_size=1, max_size=5),
    latencies=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    results=st.lists(st.sampled_from(["ok", "failed", "crashed"]), min_size=1, max_size=4),
    tie_seed=st.none() | st.integers(0, 99),
    closes_at=st.none() | INSTANTS,
)
def test_slot_results_and_notes_add_up_to_one_a_run(kit, rounds, latencies, results, tie_seed, closes_at):
    rig = kit.Rig(tie_seed=tie_seed, max_side_effect_runtime_us=7)
    outcomes = {"failed": kit.failed("no"), "crashed": kit.crashed()}
    body_results = [outcomes.get(kind, f"BK-{n}") for n, kind in enumerate(results)]
    rig.book(latency=latencies, result=body_results, timeout_us=4).look(latency=latencies, timeout_us=5)
    told = []

    def begin(number):
        plan = rounds[number]
        epoch = number + 1
        calls = tuple(kit.call(f"t{epoch}.{n}", tool, n=n_of) for n, (n_of, tool) in enumerate(plan["calls"]))
        context = Context()
        context.push(assistant("", calls))
        if plan["end"] == "speculate":
            execution = rig.commit(rig.speculate(*calls, epoch=epoch))
        else:
            execution = rig.execute(*calls, epoch=epoch)
        if plan["end"] == "discard":
            rig.clock.call_in(plan["ends_after"], Order.INTERRUPTION, drop, (execution, context))
            return
        if plan["end"] == "cancel":
            rig.clock.call_in(plan["ends_after"], Order.INTERRUPTION, lambda _: rig.barge_in(epoch))
        execution.on_complete(lambda done: deliver(done, context))

    def deliver(execution, context):
        execution.append_to(context)
        context.validate()
        told.append(execution)

    def drop(pair):
        execution, context = pair
        execution.discard()
        context.close_pending(interrupted_message)
        context.validate()

    for number, plan in enumerate(rounds):
        rig.clock.call_at(plan["at"], Order.WORK, begin, number)
    if closes_at is not None:
        rig.clock.call_at(closes_at, Order.WORK, lambda _: rig.engine.close())
    rig.clock.run()

    notes = Counter(note.split("(call ")[1].split(")")[0] for note in rig.notes())
    slots = Counter()
    for execution in told:
        notes.update(m.text.split("(call ")[1].split(")")[0] for m in execution.late_notes)
        for slot in execution.slots:
            if slot.run is not None and slot.run.answer is not None and slot.answer is slot.run.answer:
                slots[slot.call.id] += 1
        for run in execution.claims:
            slots[run.call_id] += 1
    ran = Counter(context.call_id for context in rig.contexts if context.call_id in side_effects(rig))
    assert set(ran.values()) <= {1}
    assert notes + slots == ran
    assert (rig.engine.running_calls, rig.engine.open_responses, rig.bus.running) == ((), 0, 0)


def side_effects(rig):
    return {record["call"] for record in rig.timeline.of("tool.started") if record["side_effect"]}
