"""What the tool contract asks of the engine and no test of a single rule shows: the closed sets, each name provoked.

Also here: the backstop of an interrupted call, that the engine reads no context, and what may be installed for it.
"""

from __future__ import annotations

import json
from importlib.metadata import distribution

import pytest

from bargein.pipelines.agent.assembly import InvalidCall, ResponseAssembler
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.messages import user
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.results import ErrorKind

ONE_FIELD = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

# Each situation leaves the answer in question last: in the execution it returns, and on the timeline.


def ok(kit):
    rig = kit.Rig().book()
    return rig, rig.delivered(kit.call("t1.0"))


def ok_truncated(kit):
    rig = kit.Rig(max_result_bytes=20).book(result="x" * 21)
    return rig, rig.delivered(kit.call("t1.0"))


def failed(kit):
    rig = kit.Rig().book(result=kit.failed("no table"))
    return rig, rig.delivered(kit.call("t1.0"))


def timed_out(kit):
    rig = kit.Rig().look(latency=6 * kit.S)
    return rig, rig.delivered(kit.call("t1.0", "look"), after=5 * kit.S)


def timed_out_running(kit):
    rig = kit.Rig().book(latency=6 * kit.S)
    return rig, rig.delivered(kit.call("t1.0"), after=5 * kit.S)


def interrupted(kit):
    rig = kit.Rig().look()
    execution = rig.execute(kit.call("t1.0", "look"))
    rig.barge_in(1)
    return rig, execution


def interrupted_running(kit):
    rig = kit.Rig().book()
    execution = rig.execute(kit.call("t1.0"))
    rig.barge_in(1)
    return rig, execution


def not_started(kit):
    rig = kit.Rig().book()
    rig.barge_in(1)
    return rig, rig.execute(kit.call("t1.0"))


def recorded(kit):
    rig, _ = ok(kit)
    return rig, rig.execute(kit.call("t1.0"))


def duplicate(kit):
    rig = kit.Rig().book()
    rig.execute(kit.call("t1.0"))
    return rig, rig.execute(kit.call("t1.0"))


def repeat_refused(kit):
    rig, _ = ok(kit)
    return rig, rig.execute(kit.call("t1.1"))


def lost(kit):
    rig = kit.Rig().book(result=kit.crashed())
    return rig, rig.delivered(kit.call("t1.0"))


def store_full(kit):
    rig = kit.Rig(idempotency_capacity=1).book()
    rig.execute(kit.call("t1.0", n=0))
    return rig, rig.execute(kit.call("t1.1", n=1))


def malformed(kit):
    rig = kit.Rig().look()
    return rig, rig.execute(InvalidCall("t1.0", "look", '{"a":', "cut off"))


def unknown_tool(kit):
    rig = kit.Rig().look()
    return rig, rig.execute(kit.call("t1.0", "nope"))


def invalid_arguments(kit):
    rig = kit.Rig().look(parameters=ONE_FIELD)
    return rig, rig.execute(kit.call("t1.0", "look"))


def arguments_too_large(kit):
    rig = kit.Rig(max_argument_bytes=10).look()
    return rig, rig.execute(kit.call("t1.0", "look", text="x" * 10))


def too_many_calls(kit):
    rig = kit.Rig().look(latency="now")
    return rig, rig.execute(*[kit.call(f"t1.{n}", "look") for n in range(33)])


def budget_exhausted(kit):
    rig = kit.Rig(max_invalid_rounds=0).look()
    return rig, rig.execute(kit.call("t1.0", "nope"))


def stale_turn(kit):
    rig = kit.Rig().look()
    rig.execute(epoch=2)
    return rig, rig.execute(kit.call("t1.0", "look"))


def result_too_large(kit):
    rig = kit.Rig(max_result_bytes=20).look(result="x" * 21)
    return rig, rig.delivered(kit.call("t1.0", "look"))


def astray(kit, latency=100, result="BK-1001"):
    """A booking whose execution never reached the context."""
    rig = kit.Rig().book(latency=latency, result=result)
    rig.execute(kit.call("t1.0")).discard()
    rig.to(1_000)
    return rig


def orphan_replayed(kit):
    rig = astray(kit)
    return rig, rig.execute(kit.call("t2.0"), epoch=2)


def orphan_in_flight(kit):
    rig = astray(kit, latency=9 * kit.S)
    return rig, rig.execute(kit.call("t2.0"), epoch=2)


def orphan_lost(kit):
    rig = astray(kit, result=kit.crashed())
    return rig, rig.execute(kit.call("t2.0"), epoch=2)


def orphan_reported(kit):
    rig = astray(kit)
    assert len(rig.notes()) == 1
    return rig, rig.execute(kit.call("t2.0"), epoch=2)


def confirmation_required(kit):
    rig = kit.Rig().book(confirm=True)
    return rig, rig.execute(kit.call("t1.0"))


def confirmation_refused(kit):
    rig, _ = confirmation_required(kit)
    return rig, rig.execute(kit.call("t1.1", "confirm_pending", call_id="t1.0"))


def denied(kit):
    rig = kit.Rig().book()
    return rig, rig.engine.execute([kit.call("t1.0")], 1, rig.token(1), denied={"book": "closed"})


SITUATIONS = {
    ok: "ok",
    ok_truncated: "ok",
    failed: "tool_failed",
    timed_out: "timeout",
    timed_out_running: "timeout",
    interrupted: "interrupted",
    interrupted_running: "interrupted",
    not_started: "interrupted",
    recorded: "ok",
    duplicate: "duplicate_call",
    repeat_refused: "already_done",
    lost: "unknown_outcome",
    store_full: "store_full",
    malformed: "invalid tool call",
    unknown_tool: "unknown_tool",
    invalid_arguments: "invalid_arguments",
    arguments_too_large: "arguments_too_large",
    too_many_calls: "too_many_calls",
    budget_exhausted: "budget_exhausted",
    stale_turn: "stale_turn",
    result_too_large: "result_too_large",
    orphan_replayed: "ok",
    orphan_in_flight: "duplicate_call",
    orphan_lost: "unknown_outcome",
    orphan_reported: "already_reported",
    confirmation_required: "ok",
    confirmation_refused: "confirmation_refused",
    denied: "ok",
}
"""For every outcome that a call can settle with: a situation of its name, and the kind that the model reads."""

FIELDS = ["t", "seq", "kind", "epoch", "call", "tool", "outcome", "duration_us", "retries"]


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.__name__)
def test_each_outcome_is_traced_with_all_its_fields_and_told_with_its_kind(kit, situation):
    rig, execution = situation(kit)
    records = {record["call"]: record for record in rig.timeline.of("tool.settled")}
    record = records[execution.slots[-1].call.id]
    assert (record["outcome"], list(record)) == (situation.__name__, FIELDS)
    assert kit.kinds(execution)[-1] == SITUATIONS[situation]


@pytest.mark.parametrize(
    "situation", [each for each, kind in SITUATIONS.items() if kind != "ok"], ids=lambda each: each.__name__
)
def test_an_error_is_an_object_of_kind_tool_and_detail_and_only_arguments_have_issues(kit, situation):
    _, execution = situation(kit)
    result = execution.results[-1].result
    wanted = ["error", "tool", "detail"]
    if situation is invalid_arguments:
        wanted += ["issues", "truncated"]
    assert (result.is_error, list(json.loads(result.content))) == (True, wanted)


def test_the_situations_cover_both_closed_sets():
    told_apart = {ToolOutcome.HELD, ToolOutcome.LATE_RESULT}  # events of their own, never the end of a call
    assert {each.__name__ for each in SITUATIONS} == set(ToolOutcome) - told_apart
    assert {kind for kind in SITUATIONS.values() if kind != "ok"} == set(ErrorKind)


def test_the_backstop_of_an_interrupted_call_is_its_tools_longer_timeout(kit):
    rig = kit.Rig().book(latency=150 * kit.S, timeout_us=200 * kit.S)
    rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    rig.barge_in(1)
    rig.to(150 * kit.S)
    assert (rig.ends, rig.stops, rig.notes()) == ([(150 * kit.S, "book")], [], [kit.note("BK-1001")])


class Unread(Context):
    """A context that may be pushed into and must not be read."""

    def __getattribute__(self, name):
        if name != "push":
            raise AssertionError(f"the engine reads {name}")
        return PUSHED.append


PUSHED = []


def test_the_engine_only_ever_pushes_into_a_context(kit):
    rig = astray(kit).look()
    execution = rig.execute(kit.call("t2.0", "look"), epoch=2)
    rig.to(kit.S)
    PUSHED.clear()
    execution.append_to(Unread())
    assert [message.role for message in PUSHED] == ["tool", "system"]


def test_an_edit_of_the_conversation_is_no_user_turn(kit):
    rig, execution = confirmation_required(kit)
    context = Context()
    context.push(user("yes, do it"))
    later = rig.execute(kit.call("t2.0", "confirm_pending", call_id="t1.0"), epoch=2)
    assert kit.body(later)["detail"] == "the user has not replied since you asked"
    rig.engine.confirmations.note_user_turn()
    rig.delivered(kit.call("t2.1", "confirm_pending", call_id="t1.0"), epoch=2)
    assert (execution.complete, len(rig.runs)) == (True, 1)


def test_the_assembler_knows_nothing_of_connections():
    public = {name for name in dir(ResponseAssembler) if not name.startswith("_")}
    assert public == {"call_count", "cancel", "feed", "finish", "max_bytes", "max_calls", "text"}


PERMISSIVE = ("MIT", "BSD", "APACHE", "PSF", "ISC")


def test_the_schema_library_and_all_it_needs_are_permissively_licensed():
    waiting, licences = ["jsonschema"], {}
    while waiting:
        found = distribution(waiting.pop())
        name = found.metadata["Name"].lower()
        if name in licences:
            continue
        classifiers = [each for each in found.metadata.get_all("Classifier", []) if each.startswith("License ::")]
        licences[name] = found.metadata["License-Expression"] or found.metadata["License"] or " ".join(classifiers)
        needed = [each for each in found.requires or [] if "extra ==" not in each and "python_version" not in each]
        waiting += [each.split(">")[0].split("=")[0].split(";")[0].strip() for each in needed]
    assert {"jsonschema", "referencing", "rpds-py", "attrs", "jsonschema-specifications"} <= set(licences)
    assert [name for name, licence in licences.items() if not licence.upper().startswith(PERMISSIVE)] == []
