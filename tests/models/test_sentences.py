"""Where a text is cut into sentences and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.models.sentences import split_sentences, split_words

TEXTS = st.text(alphabet="aB .!?…\"')9\n", max_size=40)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("  ", ["  "]),
        ("Done. A table for three on Friday.", ["Done.", " A table for three on Friday."]),
        ("Really?! Yes... No.", ["Really?!", " Yes...", " No."]),
        ('She said "stop." Then left.', ['She said "stop."', " Then left."]),
        ("We open at 9 a.m. today.", ["We open at 9 a.m. today."]),
        ("Ask Dr. Smith. He knows.", ["Ask Dr. Smith.", " He knows."]),
        ("It costs 3.50 now. ", ["It costs 3.50 now. "]),
        ("No end", ["No end"]),
    ],
)
def test_a_sentence_ends_at_a_full_stop_before_a_space_and_no_lower_case(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" ", [" "]),
        ("Let me book", ["Let", " me", " book"]),
        (" A  table. ", [" A", "  table. "]),
    ],
)
def test_a_word_carries_the_space_before_it(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(TEXTS)
def test_the_pieces_together_are_the_text(text: str) -> None:
    assert "".join(split_sentences(text)) == text
    assert "".join(split_words(text)) == text


@given(TEXTS, st.integers(0, 40))
def test_reading_more_text_never_moves_a_boundary(text: str, read: int) -> None:
    early = split_sentences(text[:read])[:-1]
    assert split_sentences(text)[: len(early)] == early
