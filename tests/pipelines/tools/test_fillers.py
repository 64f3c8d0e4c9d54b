"""When a filler is due, and what it says."""

from __future__ import annotations

import pytest

from bargein.pipelines.settings import FillerConfig, FillerSettings, PhraseSettings
from bargein.pipelines.tools.fillers import DEFAULT, PER_TOOL, FillerChoice, FillerPolicy
from bargein.pipelines.tools.spec import ToolKind, ToolSpec


def spec(name, *after):
    return ToolSpec(name, "", {"type": "object"}, ToolKind.READ_ONLY, 5_000_000, *after)


def texts(*phrases):
    return tuple(PhraseSettings(text) for text in phrases)


TWO = texts("a", "b")


def policy(config=DEFAULT, phrases=TWO, clips=None, **tool_phrases):
    return FillerPolicy(FillerSettings(config, phrases, tool_phrases), clips)


def test_the_two_named_settings():
    assert (FillerConfig(True, 1_200_000), FillerConfig(True, None)) == (DEFAULT, PER_TOOL)


@pytest.mark.parametrize(
    ("config", "specs", "due"),
    [
        (DEFAULT, [spec("x")], (1_200_000, "x")),
        (DEFAULT, [spec("x", 100_000), spec("y")], (1_200_000, "x")),
        (DEFAULT, [spec("x", None)], None),
        (DEFAULT, [spec("x", None), spec("y")], (1_200_000, "y")),
        (DEFAULT, [], None),
        (FillerConfig(delay_us=400_000), [spec("x", 100_000)], (400_000, "x")),
        (FillerConfig(enabled=False), [spec("x")], None),
        (PER_TOOL, [spec("x")], (700_000, "x")),
        (PER_TOOL, [spec("x", 300_000)], (300_000, "x")),
        (PER_TOOL, [spec("x", 900_000), spec("y", 300_000), spec("z", 300_000)], (300_000, "y")),
        (PER_TOOL, [spec("x", None), spec("y", None)], None),
        (PER_TOOL, [spec("x", 0)], (0, "x")),
    ],
)
def test_a_round_fills_after_the_smallest_delay_of_the_tools_that_run(config, specs, due):
    assert policy(config).delay_us(specs) == due


def test_phrases_take_turns_and_only_a_spoken_one_moves_the_turn():
    fillers = policy()
    fillers.delay_us([spec("x")])
    first = fillers.choose("x")
    fillers.delay_us([spec("x")])
    assert [first, fillers.choose("x"), fillers.choose("x")] == [FillerChoice(text) for text in "aba"]


def test_a_tools_own_phrases_share_the_counter():
    fillers = policy(calendar=texts("Checking the calendar.", "Still checking."))
    spoken = [fillers.choose(tool).text for tool in ("calendar", "other", "calendar", "calendar")]
    assert spoken == ["Checking the calendar.", "b", "Checking the calendar.", "Still checking."]


def test_a_copy_begins_its_own_rotation_and_shares_the_clips(clips):
    fillers = policy(clips=clips)
    assert fillers.choose("x").text == "a"
    copy = fillers.copy()
    assert (copy.choose("x").text, fillers.choose("x").text, copy._clips) == ("a", "b", clips)


def test_without_configuration_the_default_phrase_is_spoken():
    assert FillerPolicy().choose("x") == FillerChoice("One moment, please.")
    assert FillerPolicy().delay_us([spec("x")]) == (1_200_000, "x")
    assert FillerPolicy.from_config(PER_TOOL).delay_us([spec("x")]) == (700_000, "x")


@pytest.mark.parametrize("off", [policy(phrases=()), policy(FillerConfig(enabled=False)), policy(x=())])
def test_an_empty_list_and_the_switch_turn_fillers_off(off):
    assert (off.delay_us([spec("x")]), off.choose("x")) == (None, None)


class Clips:
    def has(self, key):
        return key == "ready"


@pytest.fixture
def clips():
    return Clips()


def test_a_clip_is_named_only_when_it_is_available(clips):
    phrases = (PhraseSettings("a", "ready"), PhraseSettings("b", "missing"), PhraseSettings("c"))
    fillers = policy(phrases=phrases, clips=clips)
    assert [fillers.choose("x") for _ in range(3)] == [
        FillerChoice("a", "ready"), FillerChoice("b"), FillerChoice("c")
    ]  # fmt: skip
    assert policy(phrases=phrases).choose("x") == FillerChoice("a")


# -- which calls count ----------------------------------------------------------------------------------------------


def test_only_calls_that_run_count(kit):
    rig = kit.Rig().book(latency=2 * kit.S).look(latency=kit.S)
    rig.tool("gated", kit.SIDE_EFFECT, 9 * kit.S, confirm=True)
    rig.delivered(kit.call("t1.0"), after=2 * kit.S)
    execution = rig.execute(
        kit.call("t1.1", "gated"), kit.call("t1.2"), kit.call("t1.3", "nope"), kit.call("t1.4", "look"),
        kit.call("t1.5", n=5),
    )  # fmt: skip
    assert [spec.name for spec in execution.running_specs] == ["look", "book"]
    rig.to(3 * kit.S)
    assert [spec.name for spec in execution.running_specs] == ["book"]
    rig.engine.confirmations.note_user_turn()
    confirmed = rig.execute(kit.call("t2.0", "confirm_pending", call_id="t1.1"), epoch=2)
    assert [spec.name for spec in confirmed.running_specs] == ["gated"]


def test_the_engine_itself_speaks_no_filler(kit):
    rig = kit.Rig().book(latency=10 * kit.S)
    rig.execute(kit.call("t1.0"))
    rig.to(10 * kit.S)
    assert not [row for row in rig.timeline if row["kind"].startswith("filler")]
