"""How a text is cut into sentences and into words.

The TTS speaks sentence by sentence and times word by word; the script that makes the audio fixtures must cut the
same text at the same places, so both call these functions. Left out: languages that end a sentence without a
following space, and abbreviations beyond the few titles below (a cut too many only costs a short pause).
"""

from __future__ import annotations

import re

__all__ = ["split_sentences", "split_words"]

_TITLES = ("Mr.", "Mrs.", "Ms.", "Dr.", "St.", "No.")
_BOUNDARY = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s+(\S))")
_END = re.compile(r"[.!?…]")
_WORD = re.compile(r"\s*\S+")


def split_sentences(text: str) -> list[str]:
    """Cut ``text`` after each sentence; the space between two sentences leads the second.

    A sentence ends at ``.``, ``!``, ``?`` or ``…`` (closing quotes and brackets included) when a space and then
    something other than a lower-case letter follow, so ``at 9 a.m. today`` stays whole. A boundary is decided by
    the text up to the character after it: reading more text never moves one, which lets a stream of text be cut
    as it arrives, all but the last piece.

    Returns:
        The pieces; together they are exactly ``text``. No pieces for an empty text.
    """
    pieces: list[str] = []
    begin = 0
    if _END.search(text, 0, len(text) - 1) is None:
        return [text] if text else pieces  # most of a stream: no sentence can have ended
    for boundary in _BOUNDARY.finditer(text):
        end = boundary.end()
        last_word = text[begin:end].rsplit(None, 1)[-1]
        if boundary.group(1).islower() or last_word in _TITLES:
            continue
        pieces.append(text[begin:end])
        begin = end
    if begin < len(text):
        pieces.append(text[begin:])
    return pieces


def split_words(text: str) -> list[str]:
    """Cut ``text`` into words that carry the space before them; a space at the very end stays on the last one.

    Returns:
        The words; together they are exactly ``text``. A text of spaces only is one word; an empty one has none.
    """
    words = _WORD.findall(text)
    rest = text[sum(map(len, words)) :]
    if rest and words:
        words[-1] += rest
    elif rest:
        words.append(rest)
    return words
