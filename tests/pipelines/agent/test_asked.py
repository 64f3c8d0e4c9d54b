"""What hooks ask of the world in the middle of a run: vectors, orders of documents, and many things at once."""

from __future__ import annotations

from json import dumps, loads
from time import perf_counter
from typing import Any

import pytest

from bargein.models.embedding import EmbeddingHandler, vector
from bargein.models.reranking import RerankingHandler
from bargein.pipelines.agent.asked import Embed, Rerank, Texts
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At, Hooks
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_settings import Agent
from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.log import EffectLog, EffectRecord, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream
from tests.pipelines.agent.run_kit import Model, Tool, World, output, text

EMBEDDER, RERANKER = "host/embedder", "host/reranker"
DOCUMENTS = ("a cup of tea", "hello there")


def asking(recorder: Recorder) -> list[Any]:
    """A run whose hook has its prompt embedded and two documents put in order as it starts; what it is told."""
    clock = Clock()
    bus = LayeredBus(recorder.open(clock))
    agent = Agent.named("golden")
    bus.serve(agent.model.key, Model(recorder.clock, text("done")))
    embedder = Descriptor(EMBEDDER, str(EffectKind.EMBED), capabilities={"dimensions": 4})
    bus.serve(EMBEDDER, EmbeddingHandler(recorder.clock, Stream(0, EMBEDDER), dimensions=4), descriptor=embedder)
    bus.serve(RERANKER, RerankingHandler(recorder.clock, Stream(0, RERANKER)))
    told: list[Any] = []

    def started(moment: Any) -> None:
        for kind, key, payload in (
            (EffectKind.EMBED, EMBEDDER, Embed(Texts(("hello",)))),
            (EffectKind.RERANK, RERANKER, Rerank("hello", DOCUMENTS)),
        ):
            moment.dispatch(kind, key, payload, lambda effect: told.append(effect.outcome.value))

    hooks = Hooks()
    hooks.on(At.RUN_STARTED, started)
    runs = AgentRuns(clock, bus, hooks)
    run = runs.spawn(agent, "hello")
    clock.run()
    assert output(run) == "done"
    return told


def test_a_hook_has_its_prompt_embedded_and_documents_put_in_order_before_the_model_is_asked() -> None:
    recorder = Recorder()
    assert asking(recorder) == [[vector("hello", 4)], [[1, 1_000_000], [0, 0]]]
    records = recorder.records(RunPlain())
    assert [(record.kind, record.key, record.scope, record.parent) for record in records] == [
        ("embed", EMBEDDER, "r1", None),
        ("rerank", RERANKER, "r1", None),
        ("completion", "golden/model:default", "r1", None),
    ]
    assert [record.request for record in records[:2]] == [
        {"inputs": {"texts": ["hello"]}},
        {"query": "hello", "documents": ["a cup of tea", "hello there"]},
    ]


@pytest.mark.parametrize("visible", [True, False])
def test_a_replay_answers_them_from_the_log(visible: bool) -> None:
    recorder = Recorder()
    told = asking(recorder)
    data = loads(dumps([record.to_dict() for record in recorder.records(RunPlain())]))
    read = [EffectRecord.from_dict(each, f"records[{at}]", at) for at, each in enumerate(data)]
    replay = Replay(EffectLog({"deliveries": batches_of(recorder.deliveries)}, read), RunPlain(), visible=visible)
    assert asking(replay.recorder) == told
    replay.finish()


def test_two_hundred_notes_come_in_order_before_a_model_that_streams_five_thousand_events() -> None:
    stream = [*((at, TextDelta("a")) for at in range(1, 5_001)), (5_001, StreamEnd())]
    world = World(stream)
    world.bus.serve("notes", Tool(world.clock, "noted"))
    told: list[Any] = []

    def started(moment: Any) -> None:
        for number in range(200):
            moment.dispatch(EffectKind.CUSTOM, "notes", {"n": number}, lambda effect: told.append(effect.payload["n"]))

    world.on(At.RUN_STARTED, started)
    began = perf_counter()
    run = world.run(streamed=True)
    took = perf_counter() - began
    log = world.bus.bus.log
    assert [effect.payload["n"] for effect in log[:200]] == told == list(range(200))
    assert [str(effect.kind) for effect in log[200:]] == ["completion"]
    assert (output(run), log[200].items, world.clock.now) == ("a" * 5_000, 5_000, 5_001)
    assert took < 20, f"{took:.1f} s"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Texts("hello"), "texts is 'hello'; accepted is texts, one after another"),  # type: ignore[arg-type]
        (lambda: Texts((1,)), r"texts is \(1,\); accepted is texts, one after another"),  # type: ignore[arg-type]
        (lambda: Rerank("q", "doc"), "documents is 'doc'; accepted is texts, one after another"),  # type: ignore[arg-type]
        (lambda: Rerank(7, ()), r"query is \(7,\); accepted is texts, one after another"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_text_is_refused_where_it_is_asked(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        make()


def test_what_was_asked_is_a_copy() -> None:
    documents = ["a"]
    asked = Rerank("q", documents)  # type: ignore[arg-type]
    documents.append("b")
    assert asked.documents == ("a",)
