"""Collecting media: what any run uses stays, and what the host pins; the rest goes, when it is asked for."""

from __future__ import annotations

from hashlib import sha256

import pytest

from bargein.pipelines.agent.collection import collect_assets
from bargein.pipelines.agent.media_sources import ContentError, Raw, Stored
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import ImagePart, ResultPart, RunMessage
from bargein.pipelines.agent.run_restore import load_runs
from bargein.pipelines.agent.saved_graph import save_runs
from tests.pipelines.agent.checkpoint_kit import reread
from tests.pipelines.agent.run_kit import World, call, calls, output, text


def picture(data: bytes) -> ImagePart:
    return ImagePart(Raw(data))


def digests(*payloads: bytes) -> tuple[str, ...]:
    return tuple([sha256(data).hexdigest() for data in payloads])


def test_what_another_run_uses_or_the_host_pins_stays_and_the_rest_goes() -> None:
    world = World(calls(call("show")), *[text("done")] * 2, max_turns=2)
    world.tool("show", picture(b"shown"))
    run = world.run(picture(b"asked"))
    gone = world.run(picture(b"gone"))
    pinned = world.runs.assets.put(Raw(b"pinned"))
    assert isinstance(pinned, Stored)
    assert world.runs.assets.digests == digests(b"asked", b"shown", b"gone", b"pinned")
    assert (world.runs.despawn(gone), collect_assets(world.runs, [pinned.sha256])) == (None, 1)
    assert world.runs.assets.digests == digests(b"asked", b"shown", b"pinned")
    assert run.messages[0].parts == (picture(b"asked"),)
    assert isinstance(run.messages[2].parts[0], ResultPart)
    assert run.messages[2].parts[0].items == (picture(b"shown"),)
    assert (collect_assets(world.runs), world.runs.assets.digests) == (1, digests(b"asked", b"shown"))


def test_a_shared_payload_stays_until_its_last_owner_is_gone() -> None:
    world = World(text("a"), text("b"))
    owners = [world.run(picture(b"same")), world.run(picture(b"same"))]
    for owner, dropped in zip(owners, (0, 1), strict=True):
        assert (world.runs.despawn(owner), collect_assets(world.runs)) == (None, dropped)
    assert world.runs.assets.digests == ()


def test_messages_that_were_not_read_yet_are_content_too() -> None:
    world = World(text("seen"))
    stored = [world.runs.assets.put(Raw(data)) for data in (b"before", b"prompt", b"neither")]
    before = RunMessage(Role.USER, (ResultPart("c", (ImagePart(stored[0]),)),))
    run = world.runs.spawn(world.agent, ImagePart(stored[1]), [before])
    assert (collect_assets(world.runs), world.runs.assets.digests) == (1, digests(b"before", b"prompt"))
    world.clock.run()
    assert output(run) == "seen"


def test_what_was_loaded_counts_as_what_was_there() -> None:
    world = World(text("a"))
    world.run(picture(b"loaded"))
    other = World(text("b"))
    other.runs.next_run = 10
    mine = other.run(picture(b"mine"))
    load_runs(reread(save_runs(world.runs)), other.runs)
    assert (other.runs.despawn(mine), collect_assets(other.runs)) == (None, 1)
    assert other.runs.assets.digests == digests(b"loaded")


@pytest.mark.parametrize("pinned", [True, False])
def test_where_a_root_is_missing_nothing_is_collected(pinned: bool) -> None:
    world = World(text("a"))
    world.run(picture(b"used"))
    world.runs.assets.put(Raw(b"unused"))
    (missing,) = digests(b"nowhere" if pinned else b"used")
    if not pinned:
        del world.runs.assets._assets[missing]
    held = world.runs.assets.digests
    with pytest.raises(ContentError, match=f"^asset {missing}: it is not in the store$"):
        collect_assets(world.runs, [missing] if pinned else ())
    assert world.runs.assets.digests == held
