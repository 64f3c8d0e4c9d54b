"""Retrieval: every round asks every link for what the user said last, and waits for all before its model is chosen."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bargein.models.index import Index, IndexHandler
from bargein.pipelines.agent.messages import Message, assistant, system, tool_answer, user
from bargein.pipelines.agent.retrieval import (
    Documents,
    Grant,
    Retrieve,
    Retrieved,
    RetrievedDocument,
    Retrieves,
    What,
    offered,
    pretty,
    query_of,
    required,
    retrieve_key,
)
from bargein.pipelines.agent.routes import ModelRoute, Routes
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.identity import key_parts
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.streams import Stream
from tests.pipelines.agent.small_run import MODEL, Desk, SmallRun, calls

CONTEXT, TOOLS = "golden/retrieve:context#0", "golden/retrieve:tools#0"
LINKS = (Retrieves(CONTEXT, 2), Retrieves(TOOLS, 1, What.TOOLS))


def found(*results: list[Any]) -> Outcome:
    return Outcome(Status.OK, list(results))


def test_every_round_asks_every_link_in_order_before_its_completion() -> None:
    desk = Desk(calls("add"), assistant("42."))
    desk.serve("golden/tool:add#0", [Outcome(Status.OK, "42")])
    desk.serve(CONTEXT, [found(), found()])
    desk.serve(TOOLS, [found(), found()])

    desk.run("Add.", links=LINKS)

    assert desk.records == ["Load", "R", "R", "C", "T", "R", "R", "C", "Append"]
    asked = [(each.key, each.kind, each.scope) for each in desk.log if desk.records[each.id] == "R"]
    assert asked == [(CONTEXT, "retrieval", "t1"), (TOOLS, "retrieval", "t1")] * 2


def test_documents_are_asked_whole_and_tools_by_their_ids_with_query_and_samples_only() -> None:
    desk = Desk(assistant("Yes."))
    desk.serve(CONTEXT, [found()])
    desk.serve(TOOLS, [found()])
    desk.run("Add.", links=LINKS)
    rest = {"threshold": None, "additional_params": None, "filter": None}
    assert [each.payload.to_dict() for each in desk.log if desk.records[each.id] == "R"] == [
        {"query": {"kind": "TopN", "req": {"query": "Add.", "samples": 2, **rest}}},
        {"query": {"kind": "TopNIds", "req": {"query": "Add.", "samples": 1, **rest}}},
    ]


@pytest.mark.parametrize("slow", [CONTEXT, TOOLS])
def test_the_round_waits_for_the_slowest_link_and_its_model_is_chosen_after_that(slow: str) -> None:
    seen: list[tuple[int, Retrieved]] = []
    desk = Desk(assistant("Yes."))
    desk.serve(CONTEXT, [found([1, "d", "x"])], 900 if slow == CONTEXT else 100)
    desk.serve(TOOLS, [found([1, "add"])], 900 if slow == TOOLS else 100)

    def select(number: int, route: ModelRoute) -> None:
        seen.append((desk.clock.now, run.retrieved))

    run = SmallRun(desk, "Add.", links=LINKS, select=select)
    run.start()
    desk.clock.run()
    assert seen == [(900, Retrieved((RetrievedDocument("d", '"x"'),), ("add",)))]
    assert [each.dispatched_at_us for each in desk.model.seen] == [900]


def test_the_query_is_the_last_words_of_the_user_also_after_a_round_of_tools() -> None:
    talk: list[Message] = [user("First."), assistant("Yes."), user("Second."), calls("add"), tool_answer("t1.0", "42")]
    assert [query_of(talk[: at + 1]) for at in range(5)] == ["First.", "First.", "Second.", "Second.", "Second."]
    assert query_of([user("Words."), user("")]) == "Words."
    assert query_of([system("Late note."), assistant("Hello.")]) is None


def test_with_nothing_said_nothing_is_looked_up() -> None:
    desk = Desk(assistant("Hello."))
    desk.serve(CONTEXT, [])
    run = desk.run("", links=LINKS[:1])
    assert desk.records == ["Load", "C", "Append"]
    assert run.retrieved == Retrieved()


def test_documents_come_in_the_order_of_the_results_link_by_link_whichever_answered_first() -> None:
    desk = Desk(assistant("Yes."))
    other = "golden/retrieve:context#1"
    desk.serve(CONTEXT, [found([9, "r2", "two"], [5, "r1", {"a": [1]}])], 500)
    desk.serve(other, [found([99, "r3", None])])
    desk.run("Q.", links=[Retrieves(CONTEXT, 2), Retrieves(other, 1)])
    assert desk.model.seen[0].payload[1] == (
        RetrievedDocument("r2", '"two"'),
        RetrievedDocument("r1", '{\n  "a": [\n    1\n  ]\n}'),
        RetrievedDocument("r3", "null"),
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", '"x"'),
        ({"b": 1, "a": "\u00fc"}, '{\n  "b": 1,\n  "a": "\u00fc"\n}'),
        ({}, "{}"),
        ([], "[]"),
        (True, "true"),
    ],
)
def test_the_text_of_a_document_is_its_value_as_indented_json_and_a_string_keeps_its_quotes(
    value: object, text: str
) -> None:
    assert pretty(value) == text


def test_a_document_that_was_there_before_is_used_again_as_it_is() -> None:
    documents = Documents([RetrievedDocument("static", "as given")])
    desk = Desk(calls("add"), assistant("42."))
    desk.serve("golden/tool:add#0", [Outcome(Status.OK, "42")])
    desk.serve(CONTEXT, [found([2, "d", "old"]), found([2, "d", "new"], [1, "static", "other"])])
    desk.run("Q.", links=LINKS[:1], documents=documents)
    first, second = (each.payload[1] for each in desk.model.seen)
    assert first == (RetrievedDocument("d", '"old"'),)
    assert second == (RetrievedDocument("d", '"old"'), RetrievedDocument("static", "as given"))
    assert second[0] is first[0]
    assert len(documents) == 2


def test_tools_that_were_found_are_offered_before_the_static_ones() -> None:
    grants = [Grant("add"), Grant("subtract", True), Grant("divide", True)]
    assert offered(["divide", "subtract"], grants) == ("divide", "subtract", "add")
    assert offered([], grants) == ("add",)
    assert offered(["ghost", "add", "subtract", "subtract"], grants) == ("subtract", "add")
    desk = Desk(assistant("Yes."))
    desk.serve(TOOLS, [found([1, "subtract"])])
    desk.run("Q.", links=LINKS[1:], grants=grants)
    assert desk.model.seen[0].payload[2] == ("subtract", "add")


def test_the_row_of_the_program_has_its_retrieval_handlers_and_the_tools_that_may_be_found() -> None:
    assert required(LINKS, ["golden/tool:subtract#1"]) == {
        "golden/retrieve:context#0": "retrieve",
        "golden/retrieve:tools#0": "retrieve",
        "golden/tool:subtract#1": "tool_call",
    }
    assert (retrieve_key("golden", What.DOCUMENTS, 0), retrieve_key("golden", What.TOOLS, 0)) == (CONTEXT, TOOLS)
    assert key_parts(retrieve_key("golden", What.TOOLS, 3)) == ("golden", "retrieve", "tools", 3)


def test_a_link_that_cannot_answer_fails_the_run_at_once_and_what_comes_later_changes_nothing() -> None:
    desk = Desk()
    desk.serve(CONTEXT, [Outcome(Status.FAILED, "the index is down")], 100)
    desk.serve(TOOLS, [found([1, "add"])], 900)
    run = desk.run("Q.", links=LINKS)
    assert (run.ending, run.failure) == ("failed", Report(ReportKind.OTHER, "the index is down"))
    assert desk.records == ["Load", "R", "R"]
    assert [each.landed_at_us for each in desk.log[1:]] == [100, 900]


@pytest.mark.parametrize(
    ("link", "value", "problem"),
    [
        (0, [[1, "d"]], f"result 0 of {CONTEXT} is not of the form [score, id, value]"),
        (0, [[1, "a", 1], [1, 7, 1]], f"result 1 of {CONTEXT} is not of the form [score, id, value]"),
        (0, [[1, "d", {1, 2}]], f"{CONTEXT} gave a result that cannot be read: .*"),
        (0, 7, f"{CONTEXT} gave a result that cannot be read: .*"),
        (1, ["add"], f"result 0 of {TOOLS} is not of the form [score, id]"),
        (1, [[1, "add", "value"]], f"result 0 of {TOOLS} is not of the form [score, id]"),
    ],
)
def test_an_answer_that_is_no_list_of_results_fails_the_run_with_the_place(
    link: int, value: object, problem: str
) -> None:
    desk = Desk()
    desk.serve(LINKS[link].key, [Outcome(Status.OK, value)])
    run = desk.run("Q.", links=LINKS[link : link + 1])
    assert run.failure is not None
    assert run.failure.kind is ReportKind.RESPONSE
    assert run.failure.message == problem or re.fullmatch(problem, run.failure.message)


def test_a_round_that_was_abandoned_goes_nowhere() -> None:
    desk = Desk()
    desk.serve(CONTEXT, [found()], 100)
    run = SmallRun(desk, "Q.", links=LINKS[:1])
    run.start()
    while not run.retrieval:
        desk.clock.step()
    run.retrieval.abandon()
    desk.clock.run()
    assert desk.records == ["Load", "R"]
    assert desk.log[1].outcome == found()


@pytest.mark.parametrize("samples", [0, -1, True, 1.0])
def test_a_link_asks_for_one_result_or_more(samples: Any) -> None:
    with pytest.raises(ValueError, match=r"samples of golden/retrieve:context#0 is a whole number, 1 or more, not"):
        Retrieves(CONTEXT, samples)


def test_an_index_answers_a_run() -> None:
    desk = Desk(assistant("Yes."))
    entries = [("hours", "When are you open?", "9 to 5"), ("menu", "What is on the menu?", ["soup"])]
    desk.bus.serve(CONTEXT, IndexHandler(desk.clock, Index(entries), Stream(0, "index")))
    desk.run("Are you open now?", links=[Retrieves(CONTEXT, 1)])
    assert desk.model.seen[0].payload[1] == (RetrievedDocument("hours", '"9 to 5"'),)


def test_a_run_without_links_asks_nobody() -> None:
    desk = Desk(assistant("Yes."))
    desk.run("Q.", routes=Routes(MODEL))
    assert desk.records == ["Load", "C", "Append"]


def test_a_query_is_data() -> None:
    assert Retrieve(What.DOCUMENTS, "q", 3) == Retrieve(What.DOCUMENTS, "q", 3, None, None, None)
