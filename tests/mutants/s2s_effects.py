"""Faults in recording, replaying and resuming live calls: what is said, what is told, and whose numbers are whose."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.s2s.ears import Ears
from bargein.models.s2s.handler import LiveHandler
from bargein.models.s2s.provider import ScriptedLive
from bargein.pipelines.agent.live_line import Received
from bargein.pipelines.s2s_connection import LiveConnection
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind
from bargein.sim.effects.playing import Playing
from bargein.sim.effects.recording import RecordedEffect
from bargein.sim.effects.replay import Replay
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

BUS = "tests/sim/effects/test_connections.py::"
PROVIDER = "tests/models/s2s/test_provider.py::"
RECORDING = "tests/sessions/s2s/test_recording.py::"
RESUMING = "tests/sessions/s2s/test_resuming.py::"
PAYLOADS = "tests/sim/lab/test_live_payloads.py::"
EDITED = (RECORDING + "test_an_edited_log_is_refused_with_the_place",)


@mutant(tests=EDITED)
def whatever_is_said_is_taken_for_what_was(patch: Patch) -> None:
    """A replay does not look at what the session tells its provider."""
    patch.setattr("bargein.sim.effects.playing.differences", lambda *_: ())


@mutant(tests=(BUS + "test_what_is_said_otherwise_is_refused_in_both_modes",))
def silence_is_no_difference(patch: Patch) -> None:
    """What the session does not say any more is not missed."""
    patch.setattr(Playing, "finish", lambda self: None)


@mutant(tests=EDITED)
def what_the_session_makes_of_it_is_not_compared(patch: Patch) -> None:
    """An edited word that changes nothing else of the call goes unnoticed."""
    patch.setattr(Replay, "_derived_otherwise", lambda self: iter(()))


@mutant(tests=(BUS + "test_a_connection_takes_no_number_of_those_that_are_dispatched",))
def a_connection_is_counted_among_the_others(patch: Patch) -> None:
    """Every timeline of a live call names other effects than before."""

    def counted(self: EffectBus, key: str, payload: Any, **options: Any) -> Any:
        return self.dispatch(EffectKind.CUSTOM, key, payload, **options)

    patch.setattr(EffectBus, "connect", counted)


@mutant(tests=(BUS + "test_it_is_recorded_as_it_goes_and_what_was_said_is_an_item",))
def what_is_said_is_not_recorded(patch: Patch) -> None:
    """The log holds one side of the conversation."""
    patch.setattr(RecordedEffect, "say", Effect.say)


@mutant(tests=(PROVIDER + "test_what_it_was_told_reads_as_it_stands_with_every_message",))
def how_it_stands_is_told_after_the_message(patch: Patch) -> None:
    """For an instant the session sees the provider busy with what it has in its hands."""

    def late(self: ScriptedLive, message: Any) -> None:
        about = self.wire.about(message)
        self._effect.deliver(Received(about.what, about.response, about.item, (), about.at_ms, about.samples))
        for event in self.wire.decode(message):
            self._effect.deliver(event)
        self._on_quiet()

    patch.setattr(ScriptedLive, "_arrive_down", late)


@mutant(tests=(PROVIDER + "test_it_stands_as_it_is_also_where_its_recogniser_is_late",))
def late_words_change_nothing(patch: Patch) -> None:
    """A provider that has come to rest by a late word is waited for until something else happens."""
    init = Ears.__init__

    def deaf(self: Ears, *given: Any) -> None:
        init(self, *given)
        self._on_words = lambda: None

    patch.setattr(Ears, "__init__", deaf)


@mutant(tests=(RECORDING + "test_every_call_replays_to_the_byte_and_nothing_of_its_provider_is_made",))
def a_provider_is_there_before_anybody_connects(patch: Patch) -> None:
    """A replay makes a provider and leaves it standing."""
    init = LiveHandler.__init__

    def eager(self: LiveHandler, make: Any, script: Any) -> None:
        init(self, make, script)
        self.provider = make(None, script)

    patch.setattr(LiveHandler, "__init__", eager)


@mutant(tests=(RECORDING + "test_the_connection_is_one_effect_behind_the_others_and_renumbers_none",))
def the_connection_is_never_closed(patch: Patch) -> None:
    """The record of a call that is over has no end."""
    patch.setattr(LiveConnection, "close", lambda self: None)


@mutant(tests=(PAYLOADS + "test_what_is_no_item_is_refused",))
def any_voice_will_do(patch: Patch) -> None:
    """Audio is rendered again by whoever has the name, whatever it sounds like."""
    patch.setattr("bargein.sim.lab.live_payloads._CONTENT", 0)


@mutant(tests=(RESUMING + "test_what_a_provider_was_connected_with_it_keeps",))
def a_provider_is_believed_to_hear_of_new_settings(patch: Patch) -> None:
    """A change is accepted that the provider never learns of."""
    patch.setattr("bargein.sim.lab.what_if._CONNECTED_WITH", ())


@mutant(tests=(RESUMING + "test_rounds_that_the_provider_has_begun_are_given_although_nobody_was_told_yet",))
def only_rounds_that_were_asked_for_are_given(patch: Patch) -> None:
    """What the provider has begun by itself may be changed, and nothing comes of the change."""
    patch.setattr("bargein.sim.lab.resumes.check_rounds", lambda *_: None)
