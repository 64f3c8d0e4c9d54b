"""The file of a cassette: written and read back whole, and refused with its line where it is none."""

from __future__ import annotations

import pytest

from bargein.models.cassettes import Cassette, CassetteError, Exchange, dump_cassette, read_cassette

CASSETTE = Cassette(
    "anthropic",
    "m",
    "call",
    (
        Exchange({"q": "ş\u2028"}, 200, 5, ((7, "data: ş".encode()[:-1]), (7, "ş".encode()[-1:]), (9, b"\n\n")), 12),
        Exchange({}, 429, 3, (), 3, broken=True),
    ),
)
TEXT = (
    '{"bargein_cassette": 1, "provider": "anthropic", "model": "m", "scenario": "call"}\n'
    '{"request": {"q": "ş\u2028"}}\n'
    '{"status": 200, "after_us": 5}\n'
    '{"after_us": 7, "base64": "ZGF0YTogxQ=="}\n'
    '{"after_us": 7, "base64": "nw=="}\n'
    '{"after_us": 9, "text": "\\n\\n"}\n'
    '{"end": "complete", "after_us": 12}\n'
    '{"request": {}}\n'
    '{"status": 429, "after_us": 3}\n'
    '{"end": "broken", "after_us": 3}\n'
)
HEAD = TEXT.split("\n")[0]


def test_a_cassette_is_json_lines_that_give_the_same_bytes_and_instants_back() -> None:
    assert dump_cassette(CASSETTE) == TEXT
    assert read_cassette(TEXT) == CASSETTE


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([""], "line 1: found no JSON object; accepted is one on every line"),
        (["[]"], "line 1: found no JSON object; accepted is one on every line"),
        (["{}"], "line 1: found no head; accepted is an object with bargein_cassette: 1"),
        (['{"bargein_cassette": 1, "provider": "x"}'], "line 1: found no model; accepted is a text"),
        ([HEAD.replace("anthropic", "x")], "line 1: found provider 'x'; accepted is anthropic, "),
        ([HEAD, "{}"], "line 2: found no request; accepted is an object with the body of one"),
        ([HEAD, '{"request": {}}'], "line 2: the file ends inside an exchange; accepted is one that ends with end"),
        ([HEAD, '{"request": {}}', '{"status": 99}'], "line 3: found no status; accepted is that of an HTTP answer"),
        (
            [HEAD, '{"request": {}}', '{"status": 200, "after_us": 1.5}'],
            "line 3: found after_us 1.5; accepted is a whole number, 0 or more",
        ),
        (
            [HEAD, '{"request": {}}', '{"status": 200, "after_us": 5}', '{"after_us": 4, "text": ""}'],
            "line 4: found after_us 4; accepted is a whole number, 5 or more",
        ),
        (
            [HEAD, '{"request": {}}', '{"status": 200, "after_us": 5}', '{"after_us": 5, "base64": "?"}'],
            "line 4: found no piece of an answer; accepted is text, base64 or end",
        ),
        (
            [HEAD, '{"request": {}}', '{"status": 200, "after_us": 5}', '{"after_us": 5, "end": "maybe"}'],
            "line 4: found end 'maybe'; accepted is complete or broken",
        ),
    ],
)
def test_what_is_no_cassette_is_refused_with_its_line(lines: list[str], sentence: str) -> None:
    with pytest.raises(CassetteError) as refused:
        read_cassette("\n".join(lines))

    assert str(refused.value).startswith(sentence)
