"""Memory of a run: loaded before the first round, appended at the end, each an effect that is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.latency import Constant
from bargein.pipelines.agent.endings import Failure
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.media_sources import Base64
from bargein.pipelines.agent.memory import Append, Clear, Form, Load, Phase, Remembers, RunMemory
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import ImagePart, RunMessage, TextPart, user_message
from bargein.pipelines.agent.run_memory import append_memory, clear_memory
from bargein.pipelines.agent.run_settings import Agent
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.identity import memory_key
from bargein.sim.effects.layers import Ask, Deny, Layer
from bargein.sim.effects.reports import Report, ReportKind
from tests.pipelines.agent.memory_kit import GOLDEN, MEMORY, OLD, RememberingWorld, memory_of, plain, remembered
from tests.pipelines.agent.run_kit import call, calls, delta, failure, output, report, text

NOBODY: Form[Any] = Form(lambda message: message, lambda data: data)


def assistant(said: str) -> RunMessage:
    return RunMessage(Role.ASSISTANT, (TextPart(said),))


def test_a_run_loads_before_its_first_round_and_appends_what_it_added_when_it_settles() -> None:
    world = RememberingWorld(text("Hello."), old=OLD)

    run = world.run("Hi.")

    assert world.ops == ["Load", "C", "Append"]
    assert world.log[0].payload == Load(GOLDEN)
    assert world.said(1) == [("user", "Earlier."), ("assistant", "Indeed."), ("user", "Hi.")]
    assert world.log[2].payload == Append(GOLDEN, plain(user_message("Hi."), assistant("Hello.")))
    operations = [each for each in world.log if each.kind == "memory"]
    assert [(each.key, each.scope, each.parent) for each in operations] == [(MEMORY, "r1", None)] * 2
    assert output(run) == "Hello."
    assert memory_of(run).phase is Phase.APPENDED


def test_what_was_loaded_stands_before_the_prompt_and_is_marked_as_remembered() -> None:
    world = RememberingWorld(text("Hello."), old=OLD)
    run = world.run("Hi.")
    assert run.messages[:2] == OLD
    assert [message.text for message in run.messages] == ["Earlier.", "Indeed.", "Hi.", "Hello."]
    assert remembered(run) == [True, True, False, False]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_first_round_waits_for_the_load_however_long_it_takes(streamed: bool) -> None:
    answer = delta("Hello.", every_us=1) if streamed else text("Hello.")
    world = RememberingWorld(answer, handler={"latency": Constant(700_000)})
    run = world.run(until_us=699_999, streamed=streamed)
    assert (str(run.phase), memory_of(run).phase, world.ops) == ("LoadingMemory", Phase.LOADING, ["Load"])
    world.clock.run()
    assert world.ops == ["Load", "C", "Append"]
    assert [each.dispatched_at_us for each in world.log[:2]] == [0, 700_000]
    assert output(run) == "Hello."


def test_a_run_of_tools_appends_its_calls_and_their_results_in_order() -> None:
    world = RememberingWorld(calls(call("add", x=17, y=25)), text("42."), max_turns=2)
    world.tool("add")
    world.run("Add.")
    assert world.ops == ["Load", "C", "T", "C", "Append"]
    assert world.appended == [
        [("user", ["text"]), ("assistant", ["tool_call"]), ("user", ["tool_result"]), ("assistant", ["text"])]
    ]


def test_a_run_that_brings_its_history_neither_loads_nor_appends_and_still_requires_its_memory() -> None:
    world = RememberingWorld(text("Hello."), old=OLD)
    run = world.run("Hi.", user_message("Mine."), assistant("Yours."))
    assert world.ops == ["C"]
    assert world.said(1) == [("user", "Mine."), ("assistant", "Yours."), ("user", "Hi.")]
    assert memory_of(run).phase is Phase.BYPASSED
    assert memory_of(run).remembers.required() == {"golden/memory": "memory"}
    assert memory_key("golden") == MEMORY


def test_a_load_that_fails_ends_the_run_before_any_completion() -> None:
    world = RememberingWorld(text("Hello."), handler={"fails": {"load": "the store is down"}})
    run = world.run()
    assert world.ops == ["Load"]
    assert (failure(run), report(run)) == (Failure.MEMORY, Report(ReportKind.OTHER, "the store is down"))
    assert memory_of(run).phase is Phase.FAILED
    append_memory(world.runs, run)
    assert len(run.effects) == 1


def test_a_load_that_a_layer_denies_leaves_no_record_and_ends_the_run() -> None:
    class Denying(Layer):
        def before(self, ask: Ask) -> Deny:
            return Deny("not today")

    world = RememberingWorld(text("Hello."))
    world.bus.wrap(MEMORY, Denying())
    run = world.run()
    assert world.ops == []
    assert (failure(run), report(run)) == (Failure.MEMORY, Report(ReportKind.DENIED, "not today"))


def test_a_memory_that_nobody_serves_ends_the_run() -> None:
    world = RememberingWorld(text("Hello."))
    world.agent.remembers = Remembers("golden/elsewhere", GOLDEN)
    run = world.run()
    assert world.ops == []
    assert report(run) == Report(ReportKind.HANDLER_UNAVAILABLE, "no handler serves golden/elsewhere")


@pytest.mark.parametrize("streamed", [False, True])
def test_an_append_that_fails_stays_in_the_record_and_the_answer_stands(streamed: bool) -> None:
    full = Report(ReportKind.OTHER, "the disk is full")
    answer = delta("Hello.") if streamed else text("Hello.")
    world = RememberingWorld(answer, handler={"fails": {"append": full.message}})
    run = world.run(streamed=streamed)
    assert world.ops == ["Load", "C", "Append"]
    assert world.log[2].outcome == Outcome(Status.FAILED, full)
    assert output(run) == "Hello."
    assert memory_of(run).append_failure == full


def test_a_run_that_fails_appends_nothing() -> None:
    world = RememberingWorld(calls(call("add")), max_turns=1)
    world.tool("add")
    assert failure(world.run()) is Failure.MAX_TURNS
    assert world.ops == ["Load", "C", "T"]


# -- hooks and layers -------------------------------------------------------------------------------------------


def _clear(world: RememberingWorld, after: type) -> None:
    """Have a hook clear when the load landed, or once the append was asked for."""

    def hook(moment: Moment) -> None:
        if moment.effect is None or type(moment.effect.payload) is after:
            clear_memory(moment.runs, moment.run)

    world.on(At.JUDGE_OUTCOME if after is Load else At.RUN_ENDED, hook)


def test_a_hook_that_clears_after_the_load_leaves_the_run_what_it_has_read() -> None:
    world = RememberingWorld(text("Hello."), old=OLD)
    _clear(world, Load)
    world.run("Hi.")
    assert world.ops == ["Load", "Clear", "C", "Append"]
    assert world.log[1].payload == Clear(GOLDEN)
    assert world.said(1)[:2] == [("user", "Earlier."), ("assistant", "Indeed.")]
    assert world.store.load(GOLDEN) == list(plain(user_message("Hi."), assistant("Hello.")))


def test_a_hook_that_clears_after_the_append_leaves_the_store_empty() -> None:
    world = RememberingWorld(text("Hello."), old=OLD)
    _clear(world, Append)
    world.run("Hi.")
    assert world.ops == ["Load", "C", "Append", "Clear"]
    assert world.store.load(GOLDEN) == []


@pytest.mark.parametrize(
    ("clears", "loaded"),
    [
        (None, plain(user_message("First."), assistant("One."))),
        (Load, plain(user_message("First."), assistant("One."))),  # cleared before the append, which comes after
        (Append, ()),
    ],
)
def test_a_second_run_loads_what_the_first_left_and_appends_only_its_own(clears: Any, loaded: tuple[Any, ...]) -> None:
    world = RememberingWorld(text("One."), text("Two."))
    if clears is not None:
        _clear(world, clears)
    world.run("First.")
    world.run("Second.")
    loads = [each for each in world.log if type(each.payload) is Load]
    appends = [each.payload.messages for each in world.log if type(each.payload) is Append]
    assert loads[1].outcome == Outcome(Status.OK, list(loaded))
    assert appends == [
        plain(user_message("First."), assistant("One.")),
        plain(user_message("Second."), assistant("Two.")),
    ]


def test_a_layer_that_replaces_the_load_gives_the_run_its_history_and_the_record_keeps_the_stores_answer() -> None:
    supplied = [*OLD, user_message("And then?")]

    class Replacing(Layer):
        def after(self, ask: Ask, outcome: Outcome) -> Outcome:
            return Outcome(Status.OK, list(plain(*supplied))) if type(ask.payload) is Load else outcome

    world = RememberingWorld(text("Hello."))
    world.bus.wrap(MEMORY, Replacing())
    world.run("Hi.")
    assert [said for _, said in world.said(1)] == ["Earlier.", "Indeed.", "And then?", "Hi."]
    assert world.log[0].outcome == Outcome(Status.OK, [])


def test_a_memory_served_one_at_a_time_and_two_tools_give_the_same_operations_in_the_same_order() -> None:
    def ops(*, serial: bool) -> list[str]:
        world = RememberingWorld(calls(call("add", "c1"), call("sub", "c2")), text("Done."), max_turns=2)
        world.tool("add", serial=serial)
        world.tool("sub", serial=serial)
        world.bus.wrap(MEMORY, serial=serial)
        world.run()
        return world.ops

    assert ops(serial=True) == ops(serial=False) == ["Load", "C", "T", "T", "C", "Append"]


# -- whose conversation -----------------------------------------------------------------------------------------


def test_a_run_keeps_the_conversation_it_was_spawned_with_and_the_id_crosses_unchanged() -> None:
    odd = 'a/"b"\n\u00fc\u2028 #1'
    world = RememberingWorld(text("One."), text("Two."))
    world.agent.remembers = Remembers(MEMORY, odd)
    world.runs.spawn(world.agent, "Hi.")
    world.agent.remembers = Remembers(MEMORY, "another")
    world.run("Ho.")
    seen = [(type(each.payload), each.payload.conversation) for each in world.log if each.kind == "memory"]
    assert seen == [(Load, odd), (Load, "another"), (Append, odd), (Append, "another")]
    assert [each.to_dict() for each in (Load(odd), Clear(odd), Append(odd, ({"a": 1},)))] == [
        {"op": "load", "conversation": odd},
        {"op": "clear", "conversation": odd},
        {"op": "append", "conversation": odd, "messages": [{"a": 1}]},
    ]


def test_runs_of_another_agent_have_no_part_in_it() -> None:
    world = RememberingWorld(text("Hello."), old=OLD)
    other = Agent.named("golden")
    run = world.runs.spawn(other, "Hi.")
    world.clock.run()
    assert world.ops == ["C"]
    assert run.memory is None
    with pytest.raises(ValueError, match="golden run 1 remembers nothing"):
        clear_memory(world.runs, run)


def test_two_agents_of_one_world_remember_each_their_own() -> None:
    world = RememberingWorld(text("One."), text("Two."), old=OLD)
    other = Agent.named("golden")
    other.remembers = Remembers(MEMORY, "another")
    world.run("Hi.")
    world.runs.spawn(other, "Ho.")
    world.clock.run()
    assert [len(request["chat_history"]) for request in world.model.requests] == [3, 1]
    assert len(world.store.load("another")) == 2


# -- stopping and resuming --------------------------------------------------------------------------------------


def test_a_run_that_was_stopped_while_it_loads_goes_nowhere_and_the_record_is_the_stores() -> None:
    world = RememberingWorld(old=OLD, handler={"latency": Constant(500)})
    run = world.run("Hi.", until_us=100)
    world.runs.cancel(run, "enough")
    world.clock.run()
    assert world.ops == ["Load"]
    assert world.log[0].outcome == Outcome(Status.OK, list(plain(*OLD)))
    assert [message.text for message in run.messages] == ["Hi."]
    assert failure(run) is Failure.CANCELLED


def test_a_resumed_run_loads_nothing_and_appends_what_was_its_own() -> None:
    world = RememberingWorld()
    memory: RunMemory[Any] = RunMemory(world.bus, Remembers(MEMORY, GOLDEN), "r1", NOBODY, Phase.READY, 2)
    begun: list[Any] = []
    memory.begin(begun.append, begun.append)
    assert memory.settle([1, 2, 3, 4])
    assert begun == [()]
    assert [each.payload for each in world.log] == [Append(GOLDEN, (3, 4))]  # type: ignore[arg-type]


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.LOADING, Phase.BYPASSED, Phase.FAILED, Phase.APPENDED])
def test_a_run_appends_only_after_it_has_loaded_and_only_once(phase: Phase) -> None:
    world = RememberingWorld()
    memory: RunMemory[Any] = RunMemory(world.bus, Remembers(MEMORY, GOLDEN), "r1", NOBODY, phase)
    assert not memory.settle([1])
    assert world.ops == []
    memory.phase = Phase.READY
    assert memory.settle([1])
    assert not memory.settle([1])
    assert world.ops == ["Append"]


# -- what a store gives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"role": "user"}, "the memory gave a dict; accepted is a list of messages"),
        ("text", "the memory gave a str; accepted is a list of messages"),
        (
            [*plain(OLD[0]), {"role": "robot"}],
            "message 1 of the memory cannot be read: message.role: found 'robot'; accepted is one of system, user, "
            "assistant",
        ),
        ([7], "message 0 of the memory cannot be read: 'int' object is not iterable"),
    ],
)
def test_what_a_store_gives_that_is_no_list_of_messages_fails_the_run_and_enters_nothing(
    value: object, message: str
) -> None:
    class Odd(Layer):
        def after(self, ask: Ask, outcome: Outcome) -> Outcome:
            return Outcome(Status.OK, value)

    world = RememberingWorld()
    world.bus.wrap(MEMORY, Odd())
    run = world.run("Hi.")
    assert (failure(run), report(run)) == (Failure.MEMORY, Report(ReportKind.RESPONSE, message))
    assert [message.text for message in run.messages] == ["Hi."]


def test_a_picture_is_appended_and_loaded_unchanged_and_stands_once_before_the_next_prompt() -> None:
    picture = user_message([TextPart("See."), ImagePart(Base64("aGk="), "image/png", "low", {"x": 1})])
    world = RememberingWorld(text("Nice."), text("Again."))
    world.run(picture)
    world.run("And now?")
    first, second = world.model.requests
    assert second["chat_history"][0] == first["chat_history"][0]
    assert [said for _, said in world.said(2)] == [["See.", "image"], "Nice.", "And now?"]
