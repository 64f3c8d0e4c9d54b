"""Retrieval: every round asks every link for what the user said last, and waits for all before its model is chosen."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bargein.models.index import Index, IndexHandler
from bargein.pipelines.agent.endings import Failure
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.messages import Message, assistant, system, tool_answer, user
from bargein.pipelines.agent.retrieval import (
    Retrieve,
    Retrieves,
    What,
    offered,
    pretty,
    query_of,
    required,
    retrieve_key,
)
from bargein.pipelines.agent.run_settings import Document
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.identity import key_parts
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.streams import Stream
from tests.pipelines.agent.memory_kit import CONTEXT, TOOLS, RememberingWorld, found
from tests.pipelines.agent.run_kit import BUSY, MS, call, calls, failure, output, report, text

LINKS = (Retrieves(CONTEXT, 2), Retrieves(TOOLS, 1, What.TOOLS))


def test_every_round_asks_every_link_in_order_before_its_completion() -> None:
    world = RememberingWorld(calls(call("add")), text("42."), max_turns=2)
    world.tool("add")
    world.look_up(*LINKS)
    world.index(CONTEXT, found(), found())
    world.index(TOOLS, found(), found())

    world.run("Add.")

    assert world.ops == ["Load", "R", "R", "C", "T", "R", "R", "C", "Append"]
    asked = [(each.key, each.kind, each.scope) for each in world.log if world.ops[each.id] == "R"]
    assert asked == [(CONTEXT, "retrieval", "r1"), (TOOLS, "retrieval", "r1")] * 2
    queries = [each.payload.query for each in world.log if world.ops[each.id] == "R"]
    assert queries == ["Add."] * 4


def test_documents_are_asked_whole_and_tools_by_their_ids_with_query_and_samples_only() -> None:
    rest = {"threshold": None, "additional_params": None, "filter": None}
    assert [Retrieve(what, "Add.", 2).to_dict() for what in What] == [
        {"query": {"kind": "TopN", "req": {"query": "Add.", "samples": 2, **rest}}},
        {"query": {"kind": "TopNIds", "req": {"query": "Add.", "samples": 2, **rest}}},
    ]


@pytest.mark.parametrize("slow", [CONTEXT, TOOLS])
def test_the_round_waits_for_the_slowest_link_and_its_model_is_chosen_after_that(slow: str) -> None:
    seen: list[Any] = []
    world = RememberingWorld(text("Yes."))
    world.look_up(*LINKS)
    world.index(CONTEXT, found([1, "d", "x"]), delay_us=900 if slow == CONTEXT else 100)
    world.index(TOOLS, found(), delay_us=900 if slow == TOOLS else 100)

    def select(moment: Moment) -> None:
        assert moment.turn is not None
        seen.append((world.clock.now, list(moment.turn.attachments)))

    world.on(At.SELECT_MODEL, select)
    world.run("Add.")
    assert seen == [(900, [Document("d", '"x"')])]
    assert [each.dispatched_at_us for each in world.log if each.kind == "completion"] == [900]


def test_the_query_is_the_last_words_of_the_user_also_after_a_round_of_tools() -> None:
    asks = assistant("", ())
    talk: list[Message] = [user("First."), assistant("Yes."), user("Second."), asks, tool_answer("t1.0", "42")]
    assert [query_of(talk[: at + 1]) for at in range(5)] == ["First.", "First.", "Second.", "Second.", "Second."]
    assert query_of([user("Words."), user("")]) == "Words."
    assert query_of([system("Late note."), assistant("Hello.")]) is None


def test_with_nothing_said_nothing_is_looked_up() -> None:
    world = RememberingWorld(text("Hello."))
    world.look_up(*LINKS)
    world.run("")
    assert world.ops == ["Load", "C", "Append"]


def test_an_agent_without_links_asks_nobody() -> None:
    world = RememberingWorld(text("Hello."))
    world.look_up()
    world.run("Hi.")
    assert world.ops == ["Load", "C", "Append"]


def test_documents_follow_the_static_ones_in_the_order_of_the_results_whichever_link_answered_first() -> None:
    world = RememberingWorld(text("Yes."))
    world.agent.context = [Document("s", "static")]
    other = retrieve_key("golden", What.DOCUMENTS, 1)
    world.look_up(Retrieves(CONTEXT, 2), Retrieves(other, 1))
    world.index(CONTEXT, found([9, "r2", "two"], [5, "r1", {"a": [1]}]), delay_us=500)
    world.index(other, found([99, "r3", None]))
    world.run("Q.")
    assert world.request(1)["documents"] == [
        {"id": "s", "text": "static"},
        {"id": "r2", "text": '"two"'},
        {"id": "r1", "text": '{\n  "a": [\n    1\n  ]\n}'},
        {"id": "r3", "text": "null"},
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x", '"x"'),
        ({"b": 1, "a": "\u00fc"}, '{\n  "b": 1,\n  "a": "\u00fc"\n}'),
        ({}, "{}"),
        ([], "[]"),
        (True, "true"),
    ],
)
def test_the_text_of_a_document_is_its_value_as_indented_json_and_a_string_keeps_its_quotes(
    value: object, said: str
) -> None:
    assert pretty(value) == said


def test_a_document_that_was_there_before_is_used_again_as_it_is() -> None:
    world = RememberingWorld(calls(call("add")), text("42."), max_turns=2)
    world.tool("add")
    world.agent.context = [Document("s", "as given")]
    world.look_up(LINKS[0])
    world.index(CONTEXT, found([2, "d", "old"]), found([2, "d", "new"], [1, "s", "other"]))
    world.run("Q.")
    static, old = {"id": "s", "text": "as given"}, {"id": "d", "text": '"old"'}
    assert [request["documents"] for request in world.model.requests] == [[static, old], [static, old, static]]
    assert list(world.runs.live[1].documents) == ["s", "d"]


def test_tools_that_were_found_are_offered_before_the_static_ones() -> None:
    grants, retrievable = ["add", "subtract", "divide"], {"subtract", "divide"}
    assert offered(["divide", "subtract"], grants, retrievable) == ("divide", "subtract", "add")
    assert offered([], grants, retrievable) == ("add",)
    assert offered(["ghost", "add", "subtract", "subtract"], grants, {*retrievable, "ghost"}) == ("subtract", "add")


def test_a_retrievable_tool_is_offered_first_and_only_in_the_rounds_in_which_it_was_found() -> None:
    world = RememberingWorld(calls(call("add")), text("42."), max_turns=2)
    for name in ("add", "subtract", "divide"):
        world.tool(name)
    world.look_up(LINKS[1], retrievable=["subtract", "divide"])
    world.index(TOOLS, found([3, "divide"], [2, "ghost"], [1, "subtract"]), found([1, "subtract"]))
    world.run("Q.")
    assert [[tool["name"] for tool in request["tools"]] for request in world.model.requests] == [
        ["divide", "subtract", "add"],
        ["subtract", "add"],
    ]


def test_the_row_of_the_program_has_its_retrieval_handlers_and_the_tools_that_may_be_found() -> None:
    assert required(LINKS, ["golden/tool:subtract#1"]) == {
        "golden/retrieve:context#0": "retrieve",
        "golden/retrieve:tools#0": "retrieve",
        "golden/tool:subtract#1": "tool_call",
    }
    assert (retrieve_key("golden", What.DOCUMENTS, 0), retrieve_key("golden", What.TOOLS, 0)) == (CONTEXT, TOOLS)
    assert key_parts(retrieve_key("golden", What.TOOLS, 3)) == ("golden", "retrieve", "tools", 3)


def test_a_link_that_cannot_answer_fails_the_run_at_once_and_what_comes_later_changes_nothing() -> None:
    world = RememberingWorld()
    world.look_up(*LINKS)
    world.index(CONTEXT, Outcome(Status.FAILED, "the index is down"), delay_us=100)
    world.index(TOOLS, found([1, "add"]), delay_us=900)
    run = world.run("Q.")
    assert (failure(run), report(run)) == (Failure.RETRIEVAL, Report(ReportKind.OTHER, "the index is down"))
    assert world.ops == ["Load", "R", "R"]
    assert [each.landed_at_us for each in world.log[1:]] == [100, 900]
    assert world.told("agent.run_ended")[0]["t"] == 100


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
    world = RememberingWorld()
    world.look_up(LINKS[link])
    world.index(LINKS[link].key, Outcome(Status.OK, value))
    said = report(world.run("Q."))
    assert said.kind is ReportKind.RESPONSE
    assert said.message == problem or re.fullmatch(problem, said.message)


def test_a_run_that_was_stopped_while_it_looks_things_up_goes_nowhere() -> None:
    world = RememberingWorld()
    world.look_up(LINKS[0])
    world.index(CONTEXT, found(), delay_us=100)
    run = world.run("Q.", until_us=50)
    world.runs.cancel(run, "enough")
    world.clock.run()
    assert world.ops == ["Load", "R"]
    assert world.log[1].outcome == found()
    assert failure(run) is Failure.CANCELLED


def test_a_run_whose_turns_are_spent_looks_nothing_up() -> None:
    world = RememberingWorld(calls(call("add")), max_turns=1)
    world.tool("add")
    world.look_up(LINKS[0])
    world.index(CONTEXT, found())
    assert failure(world.run("Q.")) is Failure.MAX_TURNS
    assert world.ops == ["Load", "R", "C", "T"]


def test_a_request_that_is_sent_again_is_a_round_that_looks_things_up_again() -> None:
    world = RememberingWorld(BUSY, text("Yes."))
    world.look_up(LINKS[0])
    world.index(CONTEXT, found([1, "d", "old"]), found([1, "e", "new"]))
    world.run("Q.")
    assert world.ops == ["Load", "R", "C", "R", "C", "Append"]
    assert [[each["id"] for each in request["documents"]] for request in world.model.requests] == [["d"], ["e"]]


@pytest.mark.parametrize("samples", [0, -1, True, 1.0])
def test_a_link_asks_for_one_result_or_more(samples: Any) -> None:
    with pytest.raises(ValueError, match=r"samples of golden/retrieve:context#0 is a whole number, 1 or more, not"):
        Retrieves(CONTEXT, samples)


def test_an_index_answers_a_run() -> None:
    world = RememberingWorld(text("Yes."))
    entries = [("hours", "When are you open?", "9 to 5"), ("menu", "What is on the menu?", ["soup"])]
    world.bus.serve(CONTEXT, IndexHandler(world.clock, Index(entries), Stream(0, "index")))
    world.look_up(Retrieves(CONTEXT, 1))
    world.run("Are you open now?")
    assert world.request(1)["documents"] == [{"id": "hours", "text": '"9 to 5"'}]


def test_a_hook_may_put_other_results_in_the_place_of_those_that_a_link_has_found() -> None:
    world = RememberingWorld(text("done"))
    world.look_up(Retrieves(CONTEXT, 1))
    world.index(CONTEXT, found([1, "theirs", "x"]), delay_us=MS)
    world.on(
        At.JUDGE_OUTCOME,
        lambda moment: moment.effect.key == CONTEXT and moment.replace_outcome(found([1, "mine", "y"])),
    )
    run = world.run()
    assert world.request(1)["documents"] == [{"id": "mine", "text": '"y"'}]
    assert (output(run), world.log[1].outcome) == ("done", found([1, "theirs", "x"]))
