"""The playout book: what was heard of which response."""

from __future__ import annotations

import numpy as np

from bargein.pipelines.playout_book import PlayoutBook, Source, UtteranceState


class Sound:
    def __init__(self, length, *words):
        self.length, self.words = length, list(words)

    def pcm(self):
        return np.zeros(self.length, dtype=np.int16)


def test_a_word_counts_as_heard_with_its_last_sample():
    utterance = PlayoutBook().register(1, 0, Source.ANSWER)
    utterance.receive(Sound(500, ("One", 100), (" two", 400)))
    heard = {}
    for samples in (0, 99, 100, 399, 400, 500):
        utterance.heard = samples
        heard[samples] = utterance.heard_text()
    assert heard == {0: "", 99: "", 100: "One", 399: "One", 400: "One two", 500: "One two"}


def test_words_of_later_pieces_lie_behind_the_earlier_ones():
    utterance = PlayoutBook().register(1, 0, Source.ANSWER)
    utterance.receive(Sound(500, ("One.", 400)))
    utterance.receive(Sound(300, (" Two", 200), (" three.", 300)))
    assert utterance.words == [("One.", 400), (" Two", 700), (" three.", 800)]
    assert [at for at, _ in utterance.pieces] == [0, 500]
    assert utterance.received == 800


def test_what_was_heard_to_its_end_is_the_text_that_was_sent():
    utterance = PlayoutBook().register(1, 0, Source.ANSWER)
    utterance.text += ["One ", "two. "]
    utterance.receive(Sound(500, ("One", 100), (" two.", 400)))
    utterance.heard, utterance.state = 500, UtteranceState.ENDED
    assert utterance.heard_text() == "One two. "


def test_responses_are_found_by_their_ordinal_and_tied_to_their_message():
    book = PlayoutBook()
    first, second = book.next_ordinal(), book.next_ordinal()
    utterance = book.register(1, second, Source.FILLER, "clip")
    assert (first, second) == (0, 1)
    assert book.of_response(second) is utterance
    assert book.of_response(first) is None
    assert book.heard_of_response(first) == ""
    book.tie(second, 7)
    assert book.ties() == [(1, 7)]
    book.untie(second)
    assert book.ties() == []
