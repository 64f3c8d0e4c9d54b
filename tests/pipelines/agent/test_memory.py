"""Memory of a run: loaded before the first round, appended at the end, each an effect that is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.latency import Constant
from bargein.pipelines.agent.memory import Append, Clear, History, Load, Phase, Remembers, Said
from bargein.pipelines.agent.messages import Media, MediaKind, Message, assistant, system, tool_answer, user
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.identity import memory_key
from bargein.sim.effects.layers import Ask, Deny, Layer
from bargein.sim.effects.reports import Report, ReportKind
from tests.pipelines.agent.small_run import MEMORY, Desk, SmallRun, calls

GOLDEN = "golden-conversation"
OLD = (user("Earlier."), assistant("Indeed."))
Plain = dict[str, Any]


def plain(*messages: Message) -> tuple[Plain, ...]:
    return tuple(message.to_dict() for message in messages)


def remembering(desk: Desk, *messages: Message, conversation: str = GOLDEN) -> Desk:
    desk.store.append(conversation, plain(*messages))
    return desk


def test_a_run_loads_before_its_first_round_and_appends_what_it_added_when_it_ends() -> None:
    desk = remembering(Desk(assistant("Hello.")), *OLD)

    run = desk.run("Hi.")

    assert desk.records == ["Load", "C", "Append"]
    assert desk.log[0].payload == Load(GOLDEN)
    assert desk.log[1].payload[0] == (*OLD, user("Hi."))
    assert desk.log[2].payload == Append(GOLDEN, plain(user("Hi."), assistant("Hello.")))
    assert {(each.key, each.scope, each.parent) for each in desk.log if each.kind == "memory"} == {(MEMORY, "t1", None)}
    assert (run.ending, run.memory.phase) == ("settled", Phase.APPENDED)


def test_what_was_loaded_stands_before_the_prompt_and_is_marked_as_remembered() -> None:
    run = remembering(Desk(assistant("Hello.")), *OLD).run("Hi.")
    assert list(run.history) == [
        Said(OLD[0], True),
        Said(OLD[1], True),
        Said(user("Hi."), False),
        Said(assistant("Hello."), False),
    ]


def test_the_first_round_waits_for_the_load_however_long_it_takes() -> None:
    desk = Desk(assistant("Hello."), latency=Constant(700_000))
    run = SmallRun(desk, "Hi.")
    run.start()
    assert (run.memory.phase, str(run.memory.phase), desk.records) == (Phase.LOADING, "loading_memory", ["Load"])
    desk.clock.run()
    assert [(each.dispatched_at_us, name) for each, name in zip(desk.log, desk.records, strict=True)] == [
        (0, "Load"),
        (700_000, "C"),
        (700_000, "Append"),
    ]


def test_a_run_of_tools_appends_its_calls_and_their_results_in_order() -> None:
    desk = Desk(calls("add"), assistant("42."))
    desk.serve("golden/tool:add#0", [Outcome(Status.OK, "42")])

    desk.run("Add.")

    assert desk.records == ["Load", "C", "T", "C", "Append"]
    said = plain(user("Add."), calls("add"), tool_answer("t1.0", "42"), assistant("42."))
    assert desk.log[4].payload == Append(GOLDEN, said)


def test_a_run_that_brings_its_history_neither_loads_nor_appends_and_still_requires_its_memory() -> None:
    desk = remembering(Desk(assistant("Hello.")), *OLD)
    remembers = Remembers(MEMORY, GOLDEN)

    run = desk.run("Hi.", given=[user("Mine."), assistant("Yours.")], remembers=remembers)

    assert desk.records == ["C"]
    assert desk.log[0].payload[0] == (user("Mine."), assistant("Yours."), user("Hi."))
    assert run.memory.phase is Phase.BYPASSED
    assert remembers.required() == {"golden/memory": "memory"}
    assert memory_key("golden") == MEMORY


def test_a_load_that_fails_ends_the_run_before_any_completion() -> None:
    desk = Desk(assistant("Hello."), fails={"load": "the store is down"})
    run = desk.run()
    assert desk.records == ["Load"]
    assert (run.ending, run.failure) == ("failed", Report(ReportKind.OTHER, "the store is down"))
    assert run.memory.phase is Phase.FAILED
    assert not run.memory.settle()


def test_a_load_that_a_layer_denies_leaves_no_record_and_ends_the_run() -> None:
    class Denying(Layer):
        def before(self, ask: Ask) -> Deny:
            return Deny("not today")

    desk = Desk(assistant("Hello."))
    desk.bus.wrap(MEMORY, Denying())
    run = desk.run()
    assert desk.records == []
    assert (run.ending, run.failure) == ("failed", Report(ReportKind.DENIED, "not today"))


def test_an_append_that_fails_stays_in_the_record_and_the_answer_stands() -> None:
    desk = Desk(assistant("Hello."), fails={"append": "the disk is full"})
    run = desk.run()
    assert desk.records == ["Load", "C", "Append"]
    assert desk.log[2].outcome == Outcome(Status.FAILED, Report(ReportKind.OTHER, "the disk is full"))
    assert run.ending == "settled"
    assert run.history.messages[-1] == assistant("Hello.")
    assert run.memory.append_failure == Report(ReportKind.OTHER, "the disk is full")


def test_a_hook_that_clears_after_the_load_leaves_the_run_what_it_has_read() -> None:
    desk = remembering(Desk(assistant("Hello.")), *OLD)
    desk.run("Hi.", on_ready=lambda run: run.memory.clear())
    assert desk.records == ["Load", "Clear", "C", "Append"]
    assert desk.log[1].payload == Clear(GOLDEN)
    assert desk.log[2].payload[0] == (*OLD, user("Hi."))
    assert desk.store.load(GOLDEN) == list(plain(user("Hi."), assistant("Hello.")))


def test_a_hook_that_clears_after_the_append_leaves_the_store_empty() -> None:
    desk = remembering(Desk(assistant("Hello.")), *OLD)
    desk.run("Hi.", on_settled=lambda run: run.memory.clear())
    assert desk.records == ["Load", "C", "Append", "Clear"]
    assert desk.store.load(GOLDEN) == []


def test_a_second_run_loads_what_the_first_appended_and_appends_only_its_own() -> None:
    desk = Desk(assistant("One."), assistant("Two."))
    desk.run("First.")
    desk.run("Second.")
    assert desk.records == ["Load", "C", "Append", "Load", "C", "Append"]
    first, second = plain(user("First."), assistant("One.")), plain(user("Second."), assistant("Two."))
    assert desk.log[3].outcome == Outcome(Status.OK, list(first))
    assert desk.log[5].payload == Append(GOLDEN, second)
    assert desk.store.load(GOLDEN) == [*first, *second]


@pytest.mark.parametrize(
    ("when", "loaded"),
    [
        ("on_ready", plain(user("First."), assistant("One."))),  # cleared before the append, which comes after
        ("on_settled", ()),
    ],
)
def test_a_second_run_after_a_clear_loads_what_was_appended_since(when: str, loaded: tuple[Plain, ...]) -> None:
    desk = Desk(assistant("One."), assistant("Two."))
    desk.run("First.", **{when: lambda run: run.memory.clear()})
    desk.run("Second.")
    assert desk.log[4].outcome == Outcome(Status.OK, list(loaded))


def test_a_layer_that_replaces_the_load_gives_the_run_its_history_and_the_record_keeps_the_stores_answer() -> None:
    supplied = [*OLD, system("Note.")]

    class Replacing(Layer):
        def after(self, ask: Ask, outcome: Outcome) -> Outcome:
            return Outcome(Status.OK, list(plain(*supplied))) if type(ask.payload) is Load else outcome

    desk = Desk(assistant("Hello."))
    desk.bus.wrap(MEMORY, Replacing())
    desk.run("Hi.")
    assert desk.log[1].payload[0] == (*supplied, user("Hi."))
    assert desk.log[0].outcome == Outcome(Status.OK, [])


def test_a_memory_served_one_at_a_time_and_two_tools_give_the_same_operations_in_the_same_order() -> None:
    def records(*, serial: bool) -> list[str]:
        desk = Desk(calls("add", "sub"), assistant("Done."))
        for name in ("add", "sub"):
            desk.serve(f"golden/tool:{name}#0", [Outcome(Status.OK, "1")])
            desk.bus.wrap(f"golden/tool:{name}#0", serial=serial)
        desk.bus.wrap(MEMORY, serial=serial)
        desk.run()
        return desk.records

    assert records(serial=True) == records(serial=False) == ["Load", "C", "T", "T", "C", "Append"]


def test_a_run_keeps_the_conversation_it_was_spawned_with_and_the_id_crosses_unchanged() -> None:
    odd = 'a/"b"\n\u00fc\u2028 #1'
    desk = Desk(assistant("One."), assistant("Two."))
    first = SmallRun(desk, "Hi.", remembers=Remembers(MEMORY, odd))
    first.start()
    desk.run("Ho.", remembers=Remembers(MEMORY, "another"))
    seen = [each.payload.conversation for each in desk.log if each.kind == "memory"]
    assert seen == [odd, "another", odd, "another"]
    assert Load(odd).to_dict() == {"op": "load", "conversation": odd}
    assert Clear(odd).to_dict() == {"op": "clear", "conversation": odd}
    assert Append(odd, plain(user("Hi."))).to_dict() == {
        "op": "append",
        "conversation": odd,
        "messages": [{"role": "user", "text": "Hi."}],
    }


def test_a_resumed_run_loads_nothing_and_appends_what_was_its_own() -> None:
    desk = Desk(assistant("Done."))
    history = History([Said(OLD[0], True), Said(OLD[1], True), Said(user("Add.")), Said(assistant("Well."))])
    run = SmallRun(desk, "", history=history, phase=Phase.READY)
    run.go_on()
    desk.clock.run()
    assert desk.records == ["C", "Append"]
    assert desk.log[1].payload == Append(GOLDEN, plain(user("Add."), assistant("Well."), assistant("Done.")))


def test_a_run_resumed_after_its_append_was_asked_for_does_not_ask_again() -> None:
    desk = Desk()
    run = SmallRun(desk, "", history=History([Said(user("Hi."))]), phase=Phase.APPENDED)
    assert not run.memory.settle()
    assert desk.records == []


def test_a_run_settles_once() -> None:
    desk = Desk(assistant("Hello."))
    run = desk.run()
    assert not run.memory.settle()
    assert desk.records == ["Load", "C", "Append"]


def test_a_run_that_was_stopped_while_it_loads_goes_nowhere_and_the_record_is_the_stores() -> None:
    desk = remembering(Desk(latency=Constant(500)), *OLD)
    run = SmallRun(desk, "Hi.")
    run.start()
    run.memory.abandon()
    desk.clock.run()
    assert desk.records == ["Load"]
    assert desk.log[0].outcome == Outcome(Status.OK, list(plain(*OLD)))
    assert (run.ending, run.history.messages) == ("", (user("Hi."),))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"role": "user"}, "the memory gave a dict; accepted is a list of messages"),
        ("text", "the memory gave a str; accepted is a list of messages"),
        (
            [{"role": "user", "text": "Hi."}, {"role": "robot"}],
            "message 1 of the memory cannot be read: role 'robot' is not a message role; "
            "accepted are system, user, assistant, tool",
        ),
        ([7], "message 0 of the memory cannot be read: 'int' object is not subscriptable"),
        ([{"role": "user"}], "message 0 of the memory cannot be read: 'text'"),
    ],
)
def test_what_a_store_gives_that_is_no_list_of_messages_fails_the_run_and_enters_nothing(
    value: object, message: str
) -> None:
    class Odd(Layer):
        def after(self, ask: Ask, outcome: Outcome) -> Outcome:
            return Outcome(Status.OK, value)

    desk = Desk()
    desk.bus.wrap(MEMORY, Odd())
    run = desk.run("Hi.")
    assert run.failure == Report(ReportKind.RESPONSE, message)
    assert run.history.messages == (user("Hi."),)


def test_a_picture_is_appended_and_loaded_unchanged_and_stands_once_before_the_next_prompt() -> None:
    picture = user("See.", Media(MediaKind.IMAGE, "image/png", "aGk=", detail="low"))
    desk = Desk(assistant("Nice."), assistant("Again."))
    first = SmallRun(desk, "")
    first.history.add(picture)
    first.go_on()
    desk.clock.run()
    desk.run("And now?")
    assert desk.log[4].payload[0] == (picture, assistant("Nice."), user("And now?"))
