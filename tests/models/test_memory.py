"""Memories: both stores keep what they were given, in order, and say what they cannot do."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bargein.models.latency import NEVER, Constant
from bargein.models.memory import MemoryHandler, MemoryStore, Store, StoreError
from bargein.models.memory_sqlite import APPLICATION_ID, VERSION, SqliteStore
from bargein.pipelines.agent.memory import Append, Clear, Load
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

KEY = "golden/memory"
HI: dict[str, Any] = {"role": "user", "text": "Hi."}
HO: dict[str, Any] = {"role": "assistant", "text": "Ho.", "tool_calls": [{"b": 1, "a": [1.5, None, "\u00fc\u2028"]}]}


@pytest.fixture(params=["memory", "sqlite", "sqlite file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore(max_messages=4)
    else:
        path = ":memory:" if request.param == "sqlite" else tmp_path / "kept.db"
        with SqliteStore(path, max_messages=4) as opened:
            yield opened


# -- any store --------------------------------------------------------------------------------------------------


def test_what_is_appended_is_loaded_in_order_and_unchanged_down_to_the_order_of_its_keys(store: Store) -> None:
    store.append("a", [HI])
    store.append("a", [HO, HI])
    loaded = store.load("a")
    assert loaded == [HI, HO, HI]
    assert str(loaded[1]) == str(HO)


def test_conversations_are_apart_and_an_unknown_one_is_empty(store: Store) -> None:
    for conversation in ("a", "A", "a ", "", "'; DROP TABLE messages; --"):
        assert store.load(conversation) == []
        store.append(conversation, [{"in": conversation}])
    assert [store.load(each) for each in ("a", "A", "a ", "")] == [[{"in": each}] for each in ("a", "A", "a ", "")]


def test_a_cleared_conversation_is_empty_and_begins_anew(store: Store) -> None:
    store.append("a", [HI])
    store.append("b", [HI])
    store.clear("a")
    store.clear("never there")
    assert (store.load("a"), store.load("b")) == ([], [HI])
    store.append("a", [HO])
    assert store.load("a") == [HO]


def test_nothing_that_happens_to_a_message_afterwards_changes_what_is_kept(store: Store) -> None:
    given = {"text": "Hi.", "parts": [1]}
    store.append("a", [given])
    given["parts"].append(2)  # type: ignore[attr-defined]
    store.load("a")[0]["parts"].append(3)
    assert store.load("a") == [{"text": "Hi.", "parts": [1]}]


def test_an_append_past_the_bound_keeps_nothing_of_it(store: Store) -> None:
    store.append("a", [HI, HI])
    with pytest.raises(StoreError, match="conversation 'a' would have 5 messages; at most 4 fit"):
        store.append("a", [HO, HO, HO])
    assert store.load("a") == [HI, HI]
    store.append("a", [HO, HO])
    assert len(store.load("a")) == 4


@pytest.mark.parametrize("odd", [{"x": {1}}, {"x": float("nan")}])
def test_what_is_no_plain_data_is_refused_with_all_that_came_with_it(store: Store, odd: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="a message is not plain data: "):
        store.append("a", [HI, odd])
    assert store.load("a") == []


# -- SQLite -----------------------------------------------------------------------------------------------------


def test_a_file_is_there_for_the_next_to_open_it(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with SqliteStore(path) as first:
        first.append("a", [HI, HO])
    with SqliteStore(str(path)) as second:
        assert second.load("a") == [HI, HO]


def test_a_database_in_memory_is_gone_with_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore() as first:
        first.append("a", [HI])
    with SqliteStore() as second:
        assert second.load("a") == []
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_dies_in_an_append_leaves_whole_appends_only(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with SqliteStore(path) as opened:
        opened.append("a", [HI])
    dying = f"""
import os
from bargein.models.memory_sqlite import SqliteStore
store = SqliteStore({str(path)!r})
with store._transaction():
    store._database.execute("INSERT INTO messages VALUES ('a', 1, '{{}}')")
    os._exit(7)
"""
    assert subprocess.run([sys.executable, "-c", dying], check=False).returncode == 7
    with SqliteStore(path) as reopened:
        assert reopened.load("a") == [HI]
        reopened.append("a", [HO])
        assert reopened.load("a") == [HI, HO]


def test_a_failure_in_the_middle_of_an_append_keeps_nothing_of_it() -> None:
    with SqliteStore() as opened:
        opened.append("a", [HI])
        opened._database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON messages WHEN new.number = 2 "
            "BEGIN SELECT raise(ABORT, 'disk full'); END"
        )
        with pytest.raises(StoreError, match=":memory:: disk full"):
            opened.append("a", [HO, HO, HO])
        assert opened.load("a") == [HI]
        assert not opened._database.in_transaction


def test_a_copy_goes_its_own_way(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "kept.db") as opened:
        opened.append("a", [HI])
        with opened.copy() as copied:
            assert copied.load("a") == [HI]
            copied.append("a", [HO])
            assert copied.load("a") == [HI, HO]
        assert opened.load("a") == [HI]


def test_a_new_file_says_what_it_is(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "kept.db").close()
    database = sqlite3.connect(tmp_path / "kept.db")
    head = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    database.close()
    assert head == [APPLICATION_ID, VERSION] == [0x62617267, 1]


def _make(path: Path, *statements: str) -> bytes:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["CREATE TABLE t (x)"], "is a database of another program; accepted is a memory or a new file"),
        (["PRAGMA user_version = 1"], "is a database of another program; accepted is a memory or a new file"),
        (["PRAGMA application_id = 1"], "is a database of another program; accepted is a memory or a new file"),
        (
            [f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 2"],
            "has memory format 2; accepted is 1",
        ),
    ],
)
def test_a_database_that_is_no_memory_of_this_version_is_refused_and_left_as_it_is(
    tmp_path: Path, statements: list[str], problem: str
) -> None:
    path = tmp_path / "other.db"
    before = _make(path, *statements)
    with pytest.raises(StoreError, match=f"other.db {problem}"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt: file is not a database"):
        SqliteStore(path)
    assert path.read_text() == "These are my notes. " * 100


def test_a_path_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing/kept\.db cannot be opened as a memory: unable to open"):
        SqliteStore(tmp_path / "missing" / "kept.db")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "is no JSON: "), ("7", "is no JSON object"), ("[" * 100_000, "is no JSON: ")],
)
def test_a_message_that_was_edited_into_something_else_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "kept.db"
    with SqliteStore(path) as opened:
        opened.append("a", [HI, HO])
        opened._database.execute("UPDATE messages SET message = ? WHERE number = 1", (text,))
        with pytest.raises(StoreError, match=f"message 1 of 'a' {problem}"):
            opened.load("a")


def test_half_a_surrogate_pair_is_refused_since_the_file_cannot_hold_it() -> None:
    with SqliteStore() as opened:
        for conversation, message in (("\ud800", HI), ("a", {"text": "\ud800"})):
            with pytest.raises(StoreError, match="half a surrogate pair cannot be kept"):
                opened.append(conversation, [message])
        assert opened.load("a") == []


# -- the handler ------------------------------------------------------------------------------------------------


class Line:
    """A memory on a bus, and what comes back from it."""

    def __init__(self, **more: Any) -> None:
        self.clock = Clock()
        self.bus = EffectBus(self.clock)
        self.store = MemoryStore()
        self.bus.register(KEY, MemoryHandler(self.clock, self.store, Stream(0, "memory"), **more))
        self.landed: list[tuple[int, Outcome | None]] = []

    def ask(self, operation: Any) -> Effect:
        return self.bus.dispatch(EffectKind.MEMORY, KEY, operation, scope="t1", on_landed=self._landed)

    def _landed(self, effect: Effect) -> None:
        self.landed.append((self.clock.now, effect.outcome))


def test_operations_take_effect_one_after_another_when_they_land() -> None:
    line = Line(latency=Constant(100))
    for operation in (Append("a", (HI,)), Load("a"), Clear("a"), Load("a")):
        line.ask(operation)
    assert line.store.load("a") == []
    line.clock.run()
    assert line.landed == [
        (100, Outcome(Status.OK)),
        (100, Outcome(Status.OK, [HI])),
        (100, Outcome(Status.OK)),
        (100, Outcome(Status.OK, [])),
    ]


@pytest.mark.parametrize(("at_us", "kept"), [(99, []), (100, [HI])])
def test_a_cancelled_append_has_left_nothing_and_one_that_lands_on_that_instant_stands(at_us: int, kept: Any) -> None:
    from bargein.sim.kernel.clock import Order

    line = Line(latency=Constant(100))
    effect = line.ask(Append("a", (HI,)))
    line.clock.call_at(at_us, Order.INTERRUPTION, effect.cancel, Cause.HANG_UP)
    line.clock.run()
    assert line.store.load("a") == kept
    assert effect.outcome == (Outcome(Status.OK) if kept else Outcome(Status.CANCELLED, Cause.HANG_UP))


def test_a_memory_that_never_answers_can_be_cancelled() -> None:
    line = Line(latency=NEVER)
    effect = line.ask(Load("a"))
    line.clock.run()
    assert effect.running
    assert effect.cancel(Cause.HANG_UP)


@pytest.mark.parametrize("name", ["load", "append", "clear"])
def test_each_operation_can_be_made_to_fail_and_then_does_nothing(name: str) -> None:
    line = Line(fails={name: "down"})
    line.store.append("a", [HI])
    operations = {"load": Load("a"), "append": Append("a", (HO,)), "clear": Clear("a")}
    line.ask(operations[name])
    line.clock.run()
    assert line.landed == [(0, Outcome(Status.FAILED, Report(ReportKind.OTHER, "down")))]
    assert line.store.load("a") == [HI]


def test_what_a_store_cannot_do_is_an_outcome() -> None:
    line = Line()
    line.ask(Append("a", ({"x": {1}},)))
    line.ask("something else")
    line.clock.run()
    messages = [outcome.value.message for _, outcome in line.landed if outcome is not None]
    assert messages == [
        "a message is not plain data: Object of type set is not JSON serializable",
        "a memory serves Load, Append and Clear, not str",
    ]
