"""Faults of the stages between the caller's audio and the caller's ear."""

from __future__ import annotations

import pytest

from bargein.pipelines.conversation import Conversation
from bargein.pipelines.llm_runner import LlmRunner
from bargein.pipelines.playout import Playout
from bargein.pipelines.playout_book import Utterance, UtteranceState
from bargein.pipelines.session import VoiceSession
from bargein.pipelines.tts_stage import TtsStage
from bargein.pipelines.turn_detector import TurnDetector
from bargein.sim.kernel.frames import FRAME_US, next_boundary_us
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch


@mutant("context_heard")
def context_keeps_unheard_text(patch: Patch) -> None:
    """After a cut the message still says what was never heard."""
    patch.setattr(Conversation, "_keep_heard", lambda self, ordinal, mid: None)


@mutant("context_heard")
def context_loses_heard_text(patch: Patch) -> None:
    """The last word that was heard is missing from the message."""
    heard_text = Utterance.heard_text

    def short(self: Utterance) -> str:
        text = heard_text(self)
        return text if self.state is UtteranceState.ENDED else text.rpartition(" ")[0]

    patch.setattr(Utterance, "heard_text", short)


@mutant("context_heard")
def context_counts_received_as_heard(patch: Patch) -> None:
    """What the synthesiser delivered is taken for what was heard."""
    patch.setattr(Utterance, "heard_text", lambda self: "".join(word for word, _ in self.words))


@mutant("context_heard", "filler_timing")
def filler_left_out_of_the_context(patch: Patch) -> None:
    """A filler is heard and never becomes a message."""
    patch.setattr(Conversation, "filler_spoken", lambda self, ordinal, text: None)


@mutant("stop_bound", "no_stale_audio")
def stale_audio_after_the_cut(patch: Patch) -> None:
    """The interruption ends the run and leaves the playout alone."""
    patch.setattr(Playout, "cut", lambda self, on_cut: on_cut())


@mutant("stop_bound", "no_stale_audio")
def cut_one_frame_late(patch: Patch) -> None:
    """The bot goes on for one frame more."""
    import bargein.pipelines.playout as playout

    cut = Playout.cut

    def late(self: Playout, on_cut: object) -> None:
        patch.setattr(playout, "next_boundary_us", lambda at_us: next_boundary_us(at_us) + FRAME_US)
        cut(self, on_cut)  # type: ignore[arg-type]
        patch.setattr(playout, "next_boundary_us", next_boundary_us)

    patch.setattr(Playout, "cut", late)


@mutant("no_stale_audio", "stop_bound", "playout_order")
def speech_stage_not_told_of_the_interruption(patch: Patch) -> None:
    """What the synthesiser still sends for the old turn is played."""
    patch.setattr(TtsStage, "interrupt", lambda self, live_epoch: None)


@mutant("playout_order")
def answer_overtakes_a_clip(patch: Patch) -> None:
    """The answer's context is opened, and its audio played, while the clip still waits."""
    patch.setattr(TtsStage, "_must_wait", lambda self: False)
    patch.setattr(TtsStage, "_has_turn", lambda self, context: True)


@mutant("filler_timing")
def filler_after_its_result(patch: Patch) -> None:
    """A filler is spoken although the result is there."""
    run_tools = LlmRunner._run_tools

    def late(self, epoch, token, number, calls, *rest):  # type: ignore[no-untyped-def]
        execution = yield from run_tools(self, epoch, token, number, calls, *rest)
        if not token.cancelled:
            yield from self._speak_filler(epoch, token, number, self._fillers.choose(calls[0].name), calls[0].name)
        return execution

    patch.setattr(LlmRunner, "_run_tools", late)


@mutant("filler_timing")
def filler_too_early(patch: Patch) -> None:
    """The filler comes 10 ms before its delay has passed."""
    from bargein.pipelines.tools.fillers import FillerPolicy

    delay_us = FillerPolicy.delay_us

    def early(self, specs):  # type: ignore[no-untyped-def]
        chosen = delay_us(self, specs)
        return None if chosen is None else (chosen[0] - 10_000, chosen[1])

    patch.setattr(FillerPolicy, "delay_us", early)


@mutant("calls_answered", "crash")
def open_calls_left_open_at_a_barge_in(patch: Patch) -> None:
    """The calls of an interrupted turn are never answered."""
    push = Conversation.push_user

    def force(self: Conversation, text: str) -> None:
        self.context._open.clear()
        push(self, text)

    patch.setattr(Conversation, "close_pending", lambda self: ())
    patch.setattr(Conversation, "push_user", force)


@mutant("no_dead_epoch_effect", "one_reply")
def interrupted_run_goes_on(patch: Patch) -> None:
    """The run is not told that it was interrupted."""
    patch.setattr("bargein.sim.kernel.cancel.CancelToken.cancelled", property(lambda self: False))
    patch.setattr("bargein.sim.kernel.cancel.CancelToken.cancel", lambda self, cause: False)


@mutant("one_reply")
def final_starts_a_run_of_its_own(patch: Patch) -> None:
    """The transcript and the end of the turn each start a reply."""
    take_turn = VoiceSession.take_turn

    def twice(self: VoiceSession, text: str, segments: list[int]) -> None:
        take_turn(self, text, segments)
        self.clock.call_in(10_000, 1, lambda _: take_turn(self, text, segments))  # type: ignore[arg-type]

    patch.setattr(VoiceSession, "take_turn", twice)


@mutant("turn_answered", "one_reply")
def turn_swallowed_by_the_interruption(patch: Patch) -> None:
    """What the caller said while interrupting is never taken as a turn."""
    barge_in, take_turn = VoiceSession.barge_in, VoiceSession.take_turn

    def note(self: VoiceSession, onset_us: int, source: str) -> None:
        self.swallow = True  # type: ignore[attr-defined]
        barge_in(self, onset_us, source)

    def drop(self: VoiceSession, text: str, segments: list[int]) -> None:
        if not self.__dict__.pop("swallow", False):
            take_turn(self, text, segments)

    patch.setattr(VoiceSession, "barge_in", note)
    patch.setattr(VoiceSession, "take_turn", drop)


@mutant("position_true", "context_heard", "playout_order")
def played_position_ahead_of_the_samples(patch: Patch) -> None:
    """The playout reports one frame more than it has played."""
    record_cut = Playout._record_cut

    def ahead(self: Playout, utterance: Utterance) -> None:
        utterance.heard += 320
        record_cut(self, utterance)

    patch.setattr(Playout, "_record_cut", ahead)


@mutant("quiet_end")
def hang_up_before_the_last_sample(patch: Patch) -> None:
    """The session ends as soon as the run has, although the answer is still being heard."""
    patch.setattr(VoiceSession, "active", property(lambda self: not self._halted and self.runner.active))


@mutant("turn_answered", "quiet_end", "one_reply")
def turn_detector_forgets_a_turn_that_waits_for_its_transcript(patch: Patch) -> None:
    """The end of the turn is decided before its transcript is there, and is not looked at again."""

    def lost(self: TurnDetector, segment: int, text: str, more: bool) -> None:
        self._timeline.add("stt.final", self._bot.epoch, segment, text)
        self._pending.pop(segment, None)
        self._on_idle()

    patch.setattr(TurnDetector, "_on_final", lost)
