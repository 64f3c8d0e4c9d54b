"""Invariants of what reaches the ear: order, silence after an interruption, and true positions.

Everything is whole samples on the frame grid. Left out: whether the context agrees with it (``context``).
"""

from __future__ import annotations

from collections.abc import Iterator

from bargein.sim.kernel.frames import FRAME_SAMPLES, next_boundary_us, samples_to_us, us_to_samples
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants.base import CheckSettings, Violation
from bargein.sim.lab.invariants.facts import Facts, Utterance

__all__ = ["no_stale_audio", "playout_order", "position_true", "stop_bound"]


def playout_order(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Audio plays in the order it was meant, without overlap; no clip is overtaken.

    Meant is the order in which responses began, and within one the order in which its utterances were opened.
    """
    name = "playout_order"
    played = sorted((u for u in facts.utterances.values() if u.started is not None), key=lambda u: _started(u)["seq"])
    before: Utterance | None = None
    for utterance in played:
        started = _started(utterance)
        if utterance.opened is None:
            text = f"utterance {utterance.number} plays although it was never opened"
            yield Violation(name, started["t"], text, started["seq"])
            continue
        if before is not None:
            yield from _after(facts, before, utterance)
        before = utterance


def _after(facts: Facts, before: Utterance, utterance: Utterance) -> Iterator[Violation]:
    started = _started(utterance)
    if _meant(facts, utterance) < _meant(facts, before):
        text = f"utterance {utterance.number} plays after utterance {before.number}, which was meant to follow it"
        yield Violation("playout_order", started["t"], text, started["seq"])
    end = before.end_sample
    still_open = before.close is None or before.close["t"] > started["t"]
    if end is not None and (started["at_sample"] < end or still_open):
        text = f"utterance {utterance.number} begins at sample {started['at_sample']} while utterance {before.number} "
        yield Violation("playout_order", started["t"], text + "still plays", started["seq"])


def _meant(facts: Facts, utterance: Utterance) -> tuple[int, int]:
    opened = utterance.opened
    assert opened is not None
    response = facts.responses.get((utterance.epoch, utterance.ordinal))
    return (response.started["seq"] if response is not None else opened["seq"], opened["seq"])


def _started(utterance: Utterance) -> Record:
    assert utterance.started is not None
    return utterance.started


def no_stale_audio(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Nothing of an ended epoch is heard after its cut (tool contract, item 8).

    An interruption comes before a frame boundary of the same instant, so an utterance that begins after the decision
    is stale; a word may still end inside the frame that was already on its way.
    """
    ends = facts.first("turn.interrupted")
    for utterance in facts.utterances.values():
        interrupted = ends.get(utterance.epoch)
        if interrupted is not None:
            begins = [] if utterance.started is None else [utterance.started]
            begins += [pause for pause in utterance.pauses if pause["kind"] == "playout.resumed"]
            for begin in begins:
                if begin["seq"] > interrupted["seq"]:
                    text = f"utterance {utterance.number} of epoch {utterance.epoch} plays after that epoch ended"
                    yield Violation("no_stale_audio", begin["t"], text, begin["seq"])
        for word in utterance.words:
            late = interrupted is not None and word["t"] > next_boundary_us(interrupted["t"])
            if late or (utterance.close is not None and word["seq"] > utterance.close["seq"]):
                text = f"word {word['word']!r} of utterance {utterance.number} is heard after its end"
                yield Violation("no_stale_audio", word["t"], text, word["seq"])


def stop_bound(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """After a barge-in decision the bot is silent by the next frame boundary."""
    last_t = facts.end["t"] if facts.end is not None else 0
    for decision in facts.of("turn.barge_in"):
        boundary = next_boundary_us(decision["t"])
        limit = us_to_samples(boundary)
        for utterance in facts.utterances.values():
            if utterance.epoch > decision["epoch"] or not utterance.spans:
                continue
            end = utterance.end_sample or 0
            paused = bool(utterance.pauses) and utterance.pauses[-1]["kind"] == "playout.starved"
            if utterance.close is None and not paused:  # plays on for as long as anybody looked
                end = max(end, us_to_samples(last_t))
            if end > limit:
                text = (
                    f"utterance {utterance.number} is heard until sample {end}, "
                    f"{samples_to_us(end - limit)} us past the frame boundary after the barge-in"
                )
                seq = utterance.close["seq"] if utterance.close is not None else decision["seq"]
                yield Violation("stop_bound", decision["t"], text, seq)


def position_true(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Every played position reported anywhere is samples over rate, within what was received."""
    for utterance in facts.utterances.values():
        yield from _starts(utterance)
        yield from _lengths(utterance)
        yield from _indices(utterance)


def _wrong(record: Record, text: str) -> Violation:
    return Violation("position_true", record["t"], f"utterance {record['utterance']} {text}", record["seq"])


def _starts(utterance: Utterance) -> Iterator[Violation]:
    begins = [] if utterance.started is None else [utterance.started]
    begins += [pause for pause in utterance.pauses if pause["kind"] == "playout.resumed"]
    for begin in begins:
        at = begin["at_sample"]
        if at % FRAME_SAMPLES:
            yield _wrong(begin, f"begins at sample {at}, which no frame begins with")
        elif samples_to_us(at) != next_boundary_us(begin["t"]):  # it may be told as soon as it is settled
            yield _wrong(begin, f"begins at sample {at}, which is heard at {samples_to_us(at)} us")


def _lengths(utterance: Utterance) -> Iterator[Violation]:
    """Each reported length against the time that has passed and the audio that was there."""
    marks = [*utterance.pauses]
    if utterance.close is not None and "samples" in utterance.close:
        marks.append(utterance.close)
    span_at = utterance.started["at_sample"] if utterance.started is not None else None
    before = 0  # samples heard before the span that is playing; None is no span
    for mark in marks:
        if mark["kind"] == "playout.resumed":
            span_at = mark["at_sample"]
            continue
        heard = mark["samples"]
        passed = before if span_at is None else before + us_to_samples(mark["t"]) - span_at
        received = mark.get("received", utterance.received)
        if received is not None and heard > received:
            yield _wrong(mark, f"was heard for {heard} samples, but only {received} were received")
        elif heard > passed:
            yield _wrong(mark, f"was heard for {heard} samples, but there was time for {passed}")
        elif mark["kind"] == "playout.cut":
            expected = passed if received is None else min(passed, received)
            if heard != expected:
                yield _wrong(mark, f"was cut after {heard} samples, but {expected} had left by then")
        elif heard < before:
            yield _wrong(mark, f"was heard for {heard} samples, fewer than the {before} before")
        elif mark["kind"] == "playout.ended" and received is not None and heard != received:
            yield _wrong(mark, f"ended after {heard} samples, but {received} were received")
        elif span_at is not None and mark["t"] > next_boundary_us(samples_to_us(span_at + heard - before)):
            yield _wrong(mark, f"is reported at {heard} samples later than it got there")
        before, span_at = max(before, heard), None


def _indices(utterance: Utterance) -> Iterator[Violation]:
    for index, word in enumerate(utterance.words):
        if word["index"] != index:
            yield _wrong(word, f"reports word {word['index']} where word {index} is due")
            return
        if utterance.started is None or word["t"] < utterance.started["t"]:
            yield _wrong(word, f"reports word {index} before it plays")
            return
