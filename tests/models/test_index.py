"""The index: whole numbers only, the same everywhere, and equal scores in the order of the entries."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.models.index import MAX_TERMS, ONE, Index, IndexHandler, cosine, embed
from bargein.models.latency import Constant
from bargein.pipelines.agent.retrieval import Retrieve, What
from bargein.sim.effects.bus import EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

ENTRIES = [
    ("hours", "When are you open? Opening hours", "9 to 5"),
    ("menu", "What is on the menu?", {"soup": 4}),
    ("parking", "Where can I park my car?", "behind the house"),
]


def test_a_text_is_nearest_to_itself_and_a_stranger_scores_nothing() -> None:
    assert cosine(embed("Table for two"), embed("table, FOR two!")) == ONE
    assert cosine(embed("zzz"), embed("abc")) == 0
    assert embed("") == embed(" ?!") == {}
    assert cosine(embed(""), embed("abc")) == 0


def test_what_shares_more_comes_first() -> None:
    found = Index(ENTRIES).top("Are you open on Sunday?", 3)
    assert [id for _, id, _ in found] == ["hours", "menu", "parking"]
    assert Index(ENTRIES).top("the menu please", 1) == [(501_280, "menu", {"soup": 4})]


def test_no_more_than_asked_for_are_found_and_an_empty_index_finds_nothing() -> None:
    assert [len(Index(ENTRIES).top("menu", samples)) for samples in (1, 2, 3, 99)] == [1, 2, 3, 3]
    assert Index().top("menu", 5) == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_equal_scores_keep_the_order_of_the_entries(order: tuple[int, ...]) -> None:
    ids = ["c", "a", "b"]
    index = Index([(ids[at], "the same words", at) for at in order])
    assert [id for _, id, _ in index.top("same", 3)] == [ids[at] for at in order]


def test_a_threshold_leaves_out_what_scores_less() -> None:
    index = Index(ENTRIES)
    score = index.top("the menu please", 1)[0][0]
    assert [id for _, id, _ in index.top("the menu please", 3, score)] == ["menu"]
    assert index.top("the menu please", 3, score + 1) == []


def test_an_id_names_one_entry() -> None:
    with pytest.raises(ValueError, match="id 'a' stands twice in the index; an id names one entry"):
        Index([("a", "one", 1), ("b", "two", 2), ("a", "three", 3)])


def test_only_so_much_of_a_text_is_looked_at() -> None:
    long = "a" * (MAX_TERMS + 1)
    assert sum(map(abs, embed(long).values())) == MAX_TERMS
    assert embed(long + " and more") == embed(long)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_scores_are_the_same_in_every_process(hash_seed: str) -> None:
    program = "from bargein.models.index import Index; print(Index([('a', 'Gr\u00fc\u00dfe', 1)]).top('Gruss', 1))"
    seen = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout == "[(182574, 'a', 1)]\n"


@given(st.text(max_size=40), st.text(max_size=40))
def test_likeness_is_mutual_and_at_most_one(one: str, other: str) -> None:
    score = cosine(embed(one), embed(other))
    assert type(score) is int
    assert score == cosine(embed(other), embed(one))
    assert -ONE <= score <= ONE
    assert cosine(embed(one), embed(one)) in (0, ONE)


# -- the handler ------------------------------------------------------------------------------------------------


def ask(payload: Any, **more: Any) -> tuple[int | None, Outcome | None]:
    clock = Clock()
    bus = EffectBus(clock)
    bus.register("golden/retrieve:context#0", IndexHandler(clock, Index(ENTRIES), Stream(0, "index"), **more))
    effect = bus.dispatch(
        EffectKind.RETRIEVAL, "golden/retrieve:context#0", payload, scope="t1", on_landed=lambda _: None
    )
    clock.run()
    return effect.landed_at_us, effect.outcome


def test_documents_are_found_with_their_values_and_tools_by_their_ids() -> None:
    assert ask(Retrieve(What.DOCUMENTS, "the menu please", 1), latency=Constant(300)) == (
        300,
        Outcome(Status.OK, [[501_280, "menu", {"soup": 4}]]),
    )
    assert ask(Retrieve(What.TOOLS, "the menu please", 1)) == (0, Outcome(Status.OK, [[501_280, "menu"]]))
    assert ask(Retrieve(What.TOOLS, "the menu please", 1, threshold=ONE)) == (0, Outcome(Status.OK, []))


@pytest.mark.parametrize(
    ("payload", "kind", "message"),
    [
        ("menu", ReportKind.REQUEST, "an index serves Retrieve, not str"),
        (
            Retrieve(What.TOOLS, "q", 1, filter={"a": 1}),
            ReportKind.REQUEST,
            "this index knows no filter and no additional parameters",
        ),
        (
            Retrieve(What.TOOLS, "q", 1, additional_params={}),
            ReportKind.REQUEST,
            "this index knows no filter and no additional parameters",
        ),
        (
            Retrieve(What.TOOLS, "q", 1, threshold=0.5),
            ReportKind.REQUEST,
            "a threshold is a whole number of millionths, not 0.5",
        ),
    ],
)
def test_what_it_does_not_know_is_an_outcome(payload: Any, kind: ReportKind, message: str) -> None:
    assert ask(payload) == (0, Outcome(Status.FAILED, Report(kind, message)))


def test_it_can_be_made_to_fail() -> None:
    outcome = Outcome(Status.FAILED, Report(ReportKind.OTHER, "down"))
    assert ask(Retrieve(What.DOCUMENTS, "q", 1), fails="down") == (0, outcome)


def test_a_cancelled_query_lands_no_result() -> None:
    clock = Clock()
    bus = EffectBus(clock)
    bus.register("k", IndexHandler(clock, Index(ENTRIES), Stream(0, "index"), Constant(100)))
    effect = bus.dispatch(EffectKind.RETRIEVAL, "k", Retrieve(What.TOOLS, "q", 1), scope="t1", on_landed=lambda _: None)
    effect.cancel(Cause.HANG_UP)
    assert not clock.busy
    assert effect.outcome == Outcome(Status.CANCELLED, Cause.HANG_UP)
