"""The remote agent of a scenario file: its keys, and what cannot be."""

from __future__ import annotations

import pytest

from bargein import sim
from bargein.models.latency import Constant
from bargein.sim.scenario.loading import load_text
from bargein.sim.scenario.model import Link, Narrowing, Outage, Remote, Tool, dump
from bargein.sim.scenario.places import ScenarioError

FULL = """
scenario: far
tools: {here: {}}
remote:
  link: {transport: datagram, latency: 20ms, jitter: 5ms, loss: 0.01, retransmit: 1s, reorder: 0.1, pace: 1ms, queue: 8,
         down: [{at: 2s, for: 1s}, {at: 3s}]}
  tools: {far: {kind: side_effect, result: R}}
  accept_at: 300ms
  set: [{at: 3s, offer: [far, here]}]
"""


def test_every_key_is_read_and_written():
    scenario = load_text(FULL)
    outages = (Outage(2_000_000, 1_000_000), Outage(3_000_000))
    assert scenario.remote == Remote(
        Link("datagram", Constant(20_000), 5_000, 0.01, 1_000_000, 0.1, 1_000, 8, outages),
        {"far": Tool("side_effect", result="R")},
        300_000,
        (Narrowing(3_000_000, ("far", "here")),),
    )
    assert load_text(dump(scenario)) == scenario


def test_a_script_may_call_what_the_agent_declares():
    data = {"scenario": "far", "remote": {"tools": {"far": {}}}, "llm": [{"calls": [{"far": {}}]}]}
    assert [spec.name for spec in sim.load(data).all_specs] == ["far"]
    with pytest.raises(ScenarioError, match='unknown tool "far"'):
        sim.load({**data, "remote": {}})


@pytest.mark.parametrize(
    ("remote", "sentence"),
    [
        (
            {"tools": {"far": {"builtin": "end_call"}}},
            "remote.tools.far.builtin: a packaged tool runs in the session; accepted here is a scripted one",
        ),
        (
            {"tools": {"far": {"timeout": "1500us"}}},
            "remote.tools.far.timeout: found 1.5ms; accepted on a link are whole milliseconds",
        ),
        (
            {"tools": {"far": {"result": 1, "error": "no"}}},
            "remote.tools.far: result and error are given together; accepted is one of result, error and crash",
        ),
        (
            {"tools": {"far": {}}, "set": [{"at": "1s", "offer": ["fra"]}]},
            'remote.set[0].offer[0]: unknown tool "fra"; the nearest known one is "far"',
        ),
        (
            {"link": {"reorder": 0.1}},
            "remote.link.reorder: a stream keeps its order; accepted is reorder with transport: datagram",
        ),
        (
            {"link": {"down": [{"at": "1s", "for": "2s"}, {"at": "2s"}]}},
            "remote.link.down[1].at: the link is down already at 2s; accepted is one outage after another",
        ),
        (
            {"link": {"down": [{"at": "1s"}, {"at": "2s"}]}},
            "remote.link.down[1].at: the link is down already at 2s; accepted is one outage after another",
        ),
        ({"link": {"loss": 1.5}}, "remote.link.loss: found 1.5; accepted is a share from 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(remote, sentence):
    with pytest.raises(ScenarioError) as refused:
        sim.load({"scenario": "far", "remote": remote})
    assert refused.value.sentences == (sentence,)
