"""The memory of a call: loaded as it connects, appended to as it ends, and never in the way of the call itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.models.memory_sqlite import SqliteStore
from bargein.pipelines.agent.messages import Message, ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.session_memory import with_ids_of_epoch_0
from bargein.sim.lab.result import Result
from bargein.sim.scenario.model import Scenario, ScenarioError

BEFORE = [{"user": "My name is Ada."}, {"agent": "Hello Ada."}]
ADA = [user("My name is Ada."), assistant("Hello Ada.")]
CALL = [user("What is my name?"), assistant("Your name is Ada.")]


def scenario(memory: Mapping[str, Any], folder: Path | None = None, **more: Any) -> Scenario:
    data: dict[str, Any] = {
        "scenario": "remembers",
        "memory": memory,
        "caller": [{"at": "0s", "level": "decision", "say": "What is my name?"}],
        "llm": [{"text": "Your name is Ada."}],
    }
    return Scenario.from_dict({**data, **more}, folder=folder)


def events(result: Result, *prefixes: str) -> list[tuple[Any, ...]]:
    """Instant, kind and values of the records of these kinds."""
    apart = ("t", "seq", "kind", "epoch")
    return [
        (record["t"], record["kind"], *[value for name, value in record.items() if name not in apart])
        for record in result.timeline
        if record["kind"].startswith(prefixes)
    ]


def requests(result: Result) -> list[tuple[int, tuple[Message, ...]]]:
    """Instant and messages of each request."""
    log = result.opened.session.bus.log
    return [(each.dispatched_at_us, each.payload.messages) for each in log if each.kind == "completion"]


def appended(result: Result) -> list[tuple[Mapping[str, Any], ...]]:
    log = result.opened.session.bus.log
    return [each.payload.messages for each in log if each.kind == "memory" and hasattr(each.payload, "messages")]


def plain(*messages: Message) -> tuple[dict[str, Any], ...]:
    return tuple(message.to_dict() for message in messages)


def test_what_was_said_before_stands_in_the_first_request_and_what_was_added_is_appended_at_the_end() -> None:
    result = sim.run(scenario({"messages": BEFORE}))
    assert result.violations == []
    assert [messages for _, messages in requests(result)] == [(*ADA, CALL[0])]
    assert appended(result) == [plain(*CALL)]
    ended = result.timeline[-1]["t"]
    assert events(result, "memory", "session") == [
        (0, "session.started"),
        (20_000, "memory.loaded", 2),
        (ended, "memory.appended", 2),
        (ended, "session.ended", "quiet"),
    ]
    assert [each["scope"] for each in result.effects if each["kind"] == "memory"] == ["session", "session"]
    assert result.metrics["words_lost"] == 0


def test_a_turn_that_comes_while_the_load_runs_waits_for_it() -> None:
    early, late = (sim.run(scenario({"messages": BEFORE, "latency": latency})) for latency in ("0s", "3s"))
    assert [messages for _, messages in requests(late)] == [messages for _, messages in requests(early)]
    assert [at_us for at_us, _ in requests(late)] == [3_000_000]
    assert requests(early)[0][0] < 3_000_000
    assert late.violations == []


def test_turns_that_wait_for_the_load_become_one() -> None:
    lines = [
        {"at": "0s", "level": "decision", "say": "What is"},
        {"at": "1.5s", "level": "decision", "say": "my name?"},
    ]
    result = sim.run(scenario({"messages": BEFORE, "latency": "4s"}, caller=lines))
    assert requests(result) == [(4_000_000, (*ADA, CALL[0]))]
    assert result.violations == []


def test_a_load_that_fails_leaves_the_call_without_a_memory_and_nothing_is_appended() -> None:
    result = sim.run(scenario({"messages": BEFORE, "fails": {"load": "the store is down"}}))
    assert events(result, "memory") == [(20_000, "memory.failed", "load", "the store is down")]
    assert [messages for _, messages in requests(result)] == [(CALL[0],)]
    assert appended(result) == []
    assert result.violations == []


def test_a_load_that_never_comes_is_given_up_after_its_limit() -> None:
    result = sim.run(scenario({"messages": BEFORE, "latency": "never"}))
    assert events(result, "memory") == [(5_000_000, "memory.failed", "load", "deadline")]
    assert requests(result) == [(5_000_000, (CALL[0],))]
    assert result.violations == []


def test_a_load_that_lands_on_the_instant_of_its_limit_counts() -> None:
    result = sim.run(scenario({"messages": BEFORE, "latency": "5s"}))
    assert events(result, "memory.loaded", "memory.failed") == [(5_000_000, "memory.loaded", 2)]
    assert requests(result)[0] == (5_000_000, (*ADA, CALL[0]))


def test_an_append_that_fails_changes_nothing_about_the_call() -> None:
    fine, broken = (sim.run(scenario({"fails": fails})) for fails in ({}, {"append": "the disk is full"}))
    assert events(broken, "memory")[1:] == [(fine.timeline[-1]["t"], "memory.failed", "append", "the disk is full")]
    assert list(broken.timeline)[:-2] == list(fine.timeline)[:-2]
    assert list(broken.timeline)[-1] == list(fine.timeline)[-1]


def test_a_caller_who_hangs_up_while_the_load_runs_is_remembered_by_nobody() -> None:
    lines = [{"at": "0s", "level": "decision", "say": "What is my name?"}, {"at": "2s", "hang_up": True}]
    result = sim.run(scenario({"messages": BEFORE, "latency": "3s"}, caller=lines))
    assert events(result, "memory", "session.ended") == [(2_000_000, "session.ended", "hang_up")]
    assert (requests(result), appended(result)) == ([], [])
    assert result.violations == []


def test_a_caller_says_nothing_into_a_call_that_is_over_and_only_still_being_kept() -> None:
    lines = [
        {"at": "0s", "level": "decision", "say": "What is my name?"},
        {"at": "2s", "level": "decision", "for": "1.1s", "say": "Well then"},
        {"at": "3.2s", "say": "Are you still there?"},
        {"after": {"event": "memory.appended"}, "say": "Hello?"},
    ]
    result = sim.run(scenario({"latency": "1.5s"}, caller=lines, session={"max_duration": "3s"}))
    assert [event for event in events(result, "") if event[0] > 3_000_000] == [
        (4_500_000, "memory.appended", 1),
        (4_500_000, "session.ended", "time_limit"),
    ]
    assert result.violations == []


def test_what_is_appended_is_what_was_heard() -> None:
    lines = [
        {"at": "0s", "level": "decision", "say": "What is my name?"},
        {"after": {"event": "playout.word", "by": "1ms"}, "level": "decision", "say": "Stop."},
    ]
    result = sim.run(scenario({}, caller=lines, llm=[{"text": "Your name is Ada."}, {"text": "Yes."}]))
    assert result.violations == []
    heard = [message.text for message in result.opened.session.conversation.context.messages]
    assert appended(result) == [plain(*result.opened.session.conversation.context.messages)]
    assert heard == ["What is my name?", "Your", "Stop.", "Yes."]


def test_calls_that_are_remembered_get_ids_that_this_call_cannot_have() -> None:
    old = [
        assistant("", (ToolCall("t1.0", "add", {"x": 1}, "abc", {"sig": 1}), ToolCall("t1.1", "add", {}))),
        tool_answer("t1.0", "1"),
        tool_answer("t1.1", "2", True),
        system("The first was 3.", tells="t1.0"),
        assistant("", (ToolCall("t1.0", "sub", {}),)),  # of a later call, whose ids begin anew
        tool_answer("t1.0", "4"),
    ]
    assert with_ids_of_epoch_0(old) == [
        assistant("", (ToolCall("t0.0", "add", {"x": 1}, "abc", {"sig": 1}), ToolCall("t0.1", "add", {}))),
        tool_answer("t0.0", "1"),
        tool_answer("t0.1", "2", True),
        system("The first was 3.", tells="t0.0"),
        assistant("", (ToolCall("t0.2", "sub", {}),)),
        tool_answer("t0.2", "4"),
    ]


TABLE = {"description": "Books.", "kind": "side_effect", "result": {"booked": True}, "latency": "200ms"}
BOOKING: dict[str, Any] = {
    "tools": {"book": TABLE},
    "llm": [{"calls": [{"book": {}}]}, {"text": "Booked."}],
}


def test_calls_of_an_earlier_call_stand_beside_those_of_this_one(tmp_path: Path) -> None:
    memory = {"store": "sqlite", "path": "kept.db", "keep": True}
    first = sim.run(scenario(memory, tmp_path, **BOOKING))
    second = sim.run(scenario(memory, tmp_path, **BOOKING))
    assert (first.violations, second.violations) == ([], [])
    sent = requests(second)[-1][1]
    assert [call.id for message in sent for call in message.calls] == ["t0.0", "t1.0"]
    assert [message.result.call_id for message in sent if message.result] == ["t0.0", "t1.0"]


# -- files ------------------------------------------------------------------------------------------------------


def test_a_call_that_is_kept_is_where_the_next_one_begins(tmp_path: Path) -> None:
    kept = scenario({"store": "sqlite", "path": "kept.db", "keep": True, "messages": BEFORE}, tmp_path)
    sim.run(kept)
    second = sim.run(kept)
    assert [messages for _, messages in requests(second)] == [(*ADA, *CALL, CALL[0])]
    with SqliteStore(tmp_path / "kept.db") as store:
        assert store.load("caller") == list(plain(*ADA, *CALL, *CALL))


def test_a_call_that_is_not_kept_leaves_the_file_as_it_is_and_gives_the_same_bytes_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with SqliteStore(path) as store:
        store.append("caller", plain(*ADA))
    before = path.read_bytes()
    results = [sim.run(scenario({"store": "sqlite", "path": "kept.db"}, tmp_path)) for _ in range(2)]
    assert path.read_bytes() == before
    assert results[0].digest == results[1].digest
    assert requests(results[0])[0][1] == (*ADA, CALL[0])


def test_both_stores_give_the_same_call() -> None:
    stores = [sim.run(scenario({"store": store, "messages": BEFORE})) for store in ("memory", "sqlite")]
    assert stores[0].digest == stores[1].digest


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "robot"}], "message 0 of the memory cannot be read: role 'robot' is not a message role"),
        (plain(user("Hi."), assistant("", (ToolCall("t1.0", "f", {}),))), "call t0.0 has no answer"),
        (plain(tool_answer("t1.0", "1")), "call t0.0 was never asked"),
        ([{"role": "assistant", "text": "", "tool_calls": [], "provider_data": None}], "an assistant message without"),
    ],
)
def test_a_conversation_that_no_request_could_hold_enters_none(
    tmp_path: Path, messages: list[dict[str, Any]], reason: str
) -> None:
    with SqliteStore(tmp_path / "kept.db") as store:
        store.append("caller", messages)
    result = sim.run(scenario({"store": "sqlite", "path": "kept.db"}, tmp_path))
    [(_, kind, operation, said)] = events(result, "memory")
    assert (kind, operation) == ("memory.failed", "load")
    assert said.startswith(reason)
    assert [messages for _, messages in requests(result)] == [(CALL[0],)]
    assert result.violations == []


@pytest.mark.parametrize(("content", "reason"), [(b"", "kept.db is an empty file"), (b"x" * 999, "file is not a data")])
def test_a_file_that_is_no_memory_fails_the_load_and_stays_as_it_is(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "kept.db"
    path.write_bytes(content)
    result = sim.run(scenario({"store": "sqlite", "path": "kept.db"}, tmp_path))
    [(_, kind, operation, said)] = events(result, "memory")
    assert (kind, operation, reason in said) == ("memory.failed", "load", True)
    assert path.read_bytes() == content


@pytest.mark.parametrize("many", ["explore", "sweep"])
def test_a_call_that_is_kept_cannot_be_one_of_many(tmp_path: Path, many: str) -> None:
    kept = scenario({"store": "sqlite", "path": "kept.db", "keep": True}, tmp_path)
    with pytest.raises(ScenarioError, match=r"memory\.keep: each call would begin where another ended"):
        sim.explore(kept) if many == "explore" else sim.sweep(kept, seeds=2)
    assert not (tmp_path / "kept.db").exists()


@pytest.mark.parametrize(
    ("memory", "problem"),
    [
        ({"store": "redis"}, r"memory\.store: "),
        ({"path": "kept.db"}, r"memory\.path: memory keeps no file; accepted is a path with store: sqlite"),
        ({"store": "sqlite", "path": "../x"}, r'memory\.path: "\.\./x" leaves the scenario\'s folder'),
        (
            {"store": "sqlite", "path": "x"},
            r'memory\.path: there is no file "x"; accepted is one that is there, or keep',
        ),
        ({"keep": True}, r"memory\.keep: there is nothing to keep it in; accepted is keep: true with a path"),
        ({"messages": [{}]}, r"memory\.messages\[0\]: accepted is either what the user said or what the agent said"),
        ({"fails": {"lode": "x"}}, r"memory\.fails\.lode: "),
    ],
)
def test_a_memory_that_cannot_be_is_refused_in_a_sentence(tmp_path: Path, memory: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        scenario(memory, tmp_path)


def test_a_file_needs_a_folder_and_a_live_provider_keeps_its_own() -> None:
    with pytest.raises(ScenarioError, match=r"memory\.path: it has no folder to be in; accepted is a scenario that is"):
        scenario({"store": "sqlite", "path": "x"})
    with pytest.raises(ScenarioError, match=r"memory: it stands beside s2s, whose provider keeps its own"):
        scenario({}, s2s={"provider": "realtime"})


def test_a_scenario_with_a_memory_is_the_same_written_and_read_again() -> None:
    memory = {"store": "sqlite", "conversation": "c", "messages": BEFORE, "latency": "1s", "fails": {"clear": "no"}}
    given = scenario(memory)
    assert given.to_dict()["memory"] == memory
    assert Scenario.from_dict(given.to_dict()) == given


# -- records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [{"messages": BEFORE}, {"fails": {"load": "down"}}, {"latency": "never"}])
def test_a_recorded_call_is_replayed_without_its_memory(tmp_path: Path, memory: dict[str, Any]) -> None:
    log = tmp_path / "log.json"
    recorded = sim.run(scenario(memory), record=log)
    for visible in (False, True):
        assert sim.replay(log, visible=visible).result.digest == recorded.digest
