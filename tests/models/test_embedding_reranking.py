"""Models that embed and rerank: whole numbers only, the same everywhere, equals in the order in which they came."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.models.embedding import EMBEDDING_DIMENSIONS, EmbeddingHandler, vector
from bargein.models.index import ONE, embed
from bargein.models.latency import NEVER, Constant
from bargein.models.reranking import RerankingHandler, overlap, ranked
from bargein.pipelines.agent.asked import Embed, Rerank, Texts
from bargein.pipelines.agent.retrieval import Retrieve, What
from bargein.sim.effects.bus import EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

DOCUMENTS = ("The soup of the day", "Opening hours: 9 to 5", "Soup and bread, all day")
OTHER = Retrieve(What.DOCUMENTS, "soup", 1)


def dot(one: list[int], other: list[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


# -- vectors --------------------------------------------------------------------------------------------------------


def test_a_vector_is_whole_numbers_and_texts_that_share_words_lie_near_one_another() -> None:
    two, again, other = (vector(text) for text in ("Table for two", "table, FOR two!", "Opening hours"))
    assert (len(two), {type(each) for each in two}) == (EMBEDDING_DIMENSIONS, {int})
    assert two == again
    assert dot(two, two) > abs(dot(two, other))


def test_a_text_without_words_has_only_zeros() -> None:
    assert vector("") == vector(" ?!") == [0] * EMBEDDING_DIMENSIONS


@given(st.text(max_size=40), st.integers(1, 40))
def test_folding_into_fewer_dimensions_loses_no_count(text: str, dimensions: int) -> None:
    folded = vector(text, dimensions)
    assert len(folded) == dimensions
    assert sum(folded) == sum(embed(text).values())


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_a_vector_is_the_same_in_every_process(hash_seed: str) -> None:
    program = "from bargein.models.embedding import vector; print(vector('Gr\u00fc\u00dfe', 8))"
    seen = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout == f"{vector('Grüße', 8)}\n" == "[1, 1, -1, 0, -1, 0, -1, 1]\n"


# -- orders ---------------------------------------------------------------------------------------------------------


def test_documents_are_ordered_by_the_share_of_the_querys_words_that_they_have() -> None:
    assert ranked("soup all day", DOCUMENTS) == [[2, ONE], [0, 666_666], [1, 0]]
    assert ranked("Soup, soup!", DOCUMENTS) == [[0, ONE], [2, ONE], [1, 0]]


def test_equal_scores_stay_in_the_order_given_and_every_document_is_in_it() -> None:
    assert ranked("soup", DOCUMENTS[::-1]) == [[0, ONE], [2, ONE], [1, 0]]
    assert ranked("zzz", DOCUMENTS) == [[0, 0], [1, 0], [2, 0]]
    assert ranked("", DOCUMENTS) == [[0, 0], [1, 0], [2, 0]]
    assert ranked("soup", ()) == []


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_share_is_a_whole_number_of_millionths(query: str, document: str) -> None:
    score = overlap(query, document)
    assert type(score) is int
    assert 0 <= score <= ONE
    assert overlap(query, query) in (0, ONE)


# -- the handlers ---------------------------------------------------------------------------------------------------


def ask(handler: type[Any], payload: Any, **more: Any) -> tuple[int | None, Outcome | None]:
    clock = Clock()
    bus = EffectBus(clock)
    bus.register("host", handler(clock, Stream(0, "host"), **more))
    effect = bus.dispatch(EffectKind.EMBED, "host", payload, scope="r1", on_landed=lambda _: None)
    clock.run()
    return effect.landed_at_us, effect.outcome


def test_every_text_gets_a_vector_in_its_order_after_the_latency() -> None:
    texts = ("one", "two", "one")
    vectors = [vector(text, 8) for text in texts]
    found = ask(EmbeddingHandler, Embed(Texts(texts)), latency=Constant(300), dimensions=8)
    assert found == (300, Outcome(Status.OK, vectors))
    assert vectors[0] == vectors[2] != vectors[1]


def test_the_order_lands_after_the_latency() -> None:
    found = ask(RerankingHandler, Rerank("soup", DOCUMENTS), latency=Constant(300))
    assert found == (300, Outcome(Status.OK, [[0, ONE], [2, ONE], [1, 0]]))


@pytest.mark.parametrize("handler", [EmbeddingHandler, RerankingHandler])
def test_failures_are_told_as_outcomes(handler: type[Any]) -> None:
    payload = Embed(Texts(("a",))) if handler is EmbeddingHandler else Rerank("a", ())
    down = Outcome(Status.FAILED, Report(ReportKind.OTHER, "down"))
    assert ask(handler, payload, fails="down") == (0, down)
    assert ask(handler, payload, latency=NEVER) == (None, None)


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (EmbeddingHandler, "an embedding model serves Embed, not Retrieve"),
        (RerankingHandler, "a reranking model serves Rerank, not Retrieve"),
    ],
)
def test_what_they_do_not_serve_is_refused(handler: type[Any], said: str) -> None:
    assert ask(handler, OTHER) == (0, Outcome(Status.FAILED, Report(ReportKind.REQUEST, said)))


@pytest.mark.parametrize("handler", [EmbeddingHandler, RerankingHandler])
def test_one_that_is_cancelled_answers_nobody(handler: type[Any]) -> None:
    clock = Clock()
    bus = EffectBus(clock)
    bus.register("host", handler(clock, Stream(0, "host"), Constant(300)))
    told: list[Outcome | None] = []
    effect = bus.dispatch(EffectKind.EMBED, "host", OTHER, scope="r1", on_landed=lambda each: told.append(each.outcome))
    effect.cancel(Cause.HANG_UP)
    clock.run()
    assert (told, clock.busy, effect.landed_at_us) == ([Outcome(Status.CANCELLED, Cause.HANG_UP)], False, 0)


@pytest.mark.parametrize("dimensions", [0, -1, True, 1.5])
def test_a_vector_has_a_whole_number_of_dimensions(dimensions: Any) -> None:
    with pytest.raises(ValueError, match=f"dimensions is {dimensions}; accepted is a whole number from 1"):
        EmbeddingHandler(Clock(), Stream(0, "host"), dimensions=dimensions)
