"""TOML with the line of each key."""

from __future__ import annotations

import pytest

from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.toml_lines import parse_toml

EVERYTHING = '''# a comment = 1
a = 1
[agent]
"sys\\"tem" = """
many # lines
= x
""" # after
tools = [ "x", # y
  'y',
  ["n"],
]
inline = {b = 1, c.d = [1,
2]}
[[l]]
k = true
[[l]]
k = 2
[l.sub]
z = 1.5
[x.'y z']
q = """a""""
'''


def test_every_key_and_list_item_has_its_line():
    data, place = parse_toml(EVERYTHING, "f.toml")
    assert data["agent"] == {
        'sys"tem': "many # lines\n= x\n",
        "tools": ["x", "y", ["n"]],
        "inline": {"b": 1, "c": {"d": [1, 2]}},
    }
    assert place.lines == {
        (): 1,
        ("a",): 2,
        ("agent",): 3,
        ("agent", 'sys"tem'): 4,
        ("agent", "tools"): 8,
        ("agent", "tools", 0): 8,
        ("agent", "tools", 1): 9,
        ("agent", "tools", 2): 10,
        ("agent", "tools", 2, 0): 10,
        ("agent", "inline"): 12,
        ("agent", "inline", "b"): 12,
        ("agent", "inline", "c"): 12,
        ("agent", "inline", "c", "d"): 12,
        ("agent", "inline", "c", "d", 0): 12,
        ("agent", "inline", "c", "d", 1): 13,
        ("l",): 14,
        ("l", 0): 14,
        ("l", 0, "k"): 15,
        ("l", 1): 16,
        ("l", 1, "k"): 17,
        ("l", 1, "sub"): 18,
        ("l", 1, "sub", "z"): 19,
        ("x",): 20,
        ("x", "y z"): 20,
        ("x", "y z", "q"): 21,
    }


def test_line_ends_of_windows_count_once():
    _, place = parse_toml("a = 1\r\nb = 2\r\n", "f.toml")
    assert place.lines == {(): 1, ("a",): 1, ("b",): 2}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = 1\nb = \n", "f.toml:2: invalid value; accepted is TOML"),
        ("a = 1\na = 2\n", "f.toml:2: cannot overwrite a value; accepted is TOML"),
        ('[a]\nb = "x', "f.toml:2: unterminated string; accepted is TOML"),
        ("[a]\nd = [1979-05-27]\n", "f.toml:2: a.d[0]: found a date or a time; accepted is a text in quotes"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_line(text, sentence):
    with pytest.raises(ScenarioError) as refused:
        parse_toml(text, "f.toml")
    assert refused.value.sentences == (sentence,)
