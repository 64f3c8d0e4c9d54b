"""Bad scenario files: each gets exactly one sentence, with file, line and key."""

from __future__ import annotations

import os
import wave
from pathlib import Path

import pytest

from bargein.sim.scenario import texts
from bargein.sim.scenario.loading import load, load_text
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError

UNITS = 'a number with a unit: us, ms, s, min or h (such as "400ms" or "1.2s")'

GOOD = """\
scenario: small
agent:
  filler: {delay: 1.2s}
tools:
  book_table:
    kind: side_effect
    latency: 1s
caller:
  - {say: "A table for two.", at: 500ms}
  - {say: "Wait.", after: {event: tool.started, tool: book_table, by: 900ms}}
llm:
  - {text: "Let me book.", calls: [{book_table: {day: friday}}]}
  - {text: "Done."}
expect:
  tool_runs: {book_table: 1}
"""


def sentences(text: str, file: str = "bad.yaml", folder: Path | None = None) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_text(text, file, folder=folder)
    return list(caught.value.sentences)


def refused(name: str | Path) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load(name)
    return list(caught.value.sentences)


def test_the_file_that_the_others_spoil_is_good() -> None:
    assert load_text(GOOD, "good.yaml").name == "small"


STRUCTURE = [
    ("filler: {", "fillr: {", '3: agent.fillr: unknown key "fillr"; the nearest known one is "filler"'),
    ("delay: 1.2s", "dely: 1.2s", '3: agent.filler.dely: unknown key "dely"; the nearest known one is "delay"'),
    ("delay: 1.2s", "delay: 400", f"3: agent.filler.delay: 400 has no unit; accepted is {UNITS}"),
    ("delay: 1.2s", 'delay: "400"', f'3: agent.filler.delay: "400" is not a duration; accepted is {UNITS}'),
    ("delay: 1.2s", "delay: 4 sec", f'3: agent.filler.delay: "4 sec" is not a duration; accepted is {UNITS}'),
    ("delay: 1.2s", "delay: 1:30", f'3: agent.filler.delay: "1:30" is not a duration; accepted is {UNITS}'),
    ("delay: 1.2s", "delay: yes", f'3: agent.filler.delay: "yes" is not a duration; accepted is {UNITS}'),
    ("delay: 1.2s", "delay: [1s]", f"3: agent.filler.delay: found a list of 1; accepted is {UNITS}"),
    ("delay: 1.2s", "delay:", f"3: agent.filler.delay: found null; accepted is {UNITS}"),
    (
        "delay: 1.2s",
        "delay: 0.5us",
        '3: agent.filler.delay: "0.5us" is not a whole number of microseconds; the clock counts whole ones',
    ),
    (
        "delay: 1.2s",
        "delay: 1.2s, per_tool: true",
        "3: agent.filler: delay and per_tool are both given; accepted is one of them",
    ),
    (
        "{delay: 1.2s}",
        "on",
        '3: agent.filler: found "on"; accepted is off, or a mapping with delay or per_tool, phrases, tool_phrases, '
        "clip and speak_progress",
    ),
    ("at: 500ms", "at: -500ms", '9: caller[0].at: "-500ms" is negative; accepted is zero or more'),
    ("at: 500ms", "at: -5", "9: caller[0].at: -5 is negative; accepted is zero or more, with a unit"),
    (
        "kind: side_effect",
        "kind: readonly",
        '6: tools.book_table.kind: unknown value "readonly"; the nearest known one is "read_only"',
    ),
    ("kind: side_effect", "confirm: maybe", '6: tools.book_table.confirm: found "maybe"; accepted is true or false'),
    (
        "latency: 1s",
        "latency: {dist: lognorm, median: 3s, p95: 1s}",
        "7: tools.book_table.latency: median 3s and p95 "
        "1s fit no lognormal; accepted is a median above zero and a p95 no smaller",
    ),
    (
        "latency: 1s",
        "latency: {dist: gama}",
        '7: tools.book_table.latency.dist: unknown value "gama"; the nearest known one is "gamma"',
    ),
    (
        "latency: 1s",
        "latency: {median: 3s}",
        '7: tools.book_table.latency: the key "dist" is missing; accepted is '
        "{dist: lognorm, median, p95}, {dist: gamma, mean, sd}, {dist: uniform, low, high} or "
        "{dist: empirical, values}",
    ),
    ("latency: 1s", "timeout: 0s", "7: tools.book_table.timeout: found 0us; accepted is a duration above zero"),
    (
        "latency: 1s",
        "result: 1\n    error: no",
        "5: tools.book_table: result and error are given together; accepted is one of result, error and crash",
    ),
    ("scenario: small", "scenario: a/b", '1: scenario: found "a/b"; accepted is a name of letters, digits, _, . and -'),
    (
        "scenario: small",
        "about: small",
        '1: the key "scenario" is missing; accepted is a mapping with scenario, tools, caller, llm and expect',
    ),
    ('{text: "Done."}', "Done.", '13: llm[1]: found "Done."; accepted is a mapping with text and calls'),
    (
        "[{book_table: {day: friday}}]",
        "[{a: {}, b: {}}]",
        "12: llm[0].calls[0]: found a mapping; accepted is {<tool>: "
        "{<arguments>}}, or a mapping with tool, and args or raw",
    ),
]

SENSE = [
    (
        "[{book_table:",
        "[{bok_table:",
        '12: llm[0].calls[0]: unknown tool "bok_table"; the nearest known one is '
        '"book_table" (unknown: true if that is meant)',
    ),
    (
        "tool_runs: {book_table",
        "tool_runs: {cook",
        '15: expect.tool_runs.cook: unknown tool "cook"; accepted is book_table',
    ),
    (
        "tool_runs: {book_table: 1}",
        "outcomes: {book_table: [okay]}",
        '15: expect.outcomes.book_table[0]: unknown outcome "okay"; the nearest known one is "ok"',
    ),
    (
        "tool_runs: {book_table: 1}",
        "violations: [effect_twice]",
        '15: expect.violations[0]: unknown invariant "effect_twice"; the nearest known one is "effect_once"',
    ),
    (
        "tool_runs: {book_table: 1}",
        "counts: {filler: 1}",
        '15: expect.counts.filler: unknown event "filler"; the nearest known one is "filler.due"',
    ),
    (
        "tool_runs: {book_table: 1}",
        "events: [{kind: playout.cut, call: x}]",
        "15: expect.events[0].call: playout.cut has no such field; accepted is utterance, samples, received or epoch",
    ),
    (
        "tool_runs: {book_table: 1}",
        "metrics: {stop_latency: {min: 2s, max: 1s}}",
        "15: expect.metrics.stop_latency: min is above max; accepted is a min no greater than the max",
    ),
    (
        "{delay: 1.2s}",
        "{tool_phrases: {cook: [Hm.]}}",
        '3: agent.filler.tool_phrases.cook: unknown tool "cook"; accepted is book_table',
    ),
    (
        "event: tool.started",
        "event: tool.start",
        '10: caller[1].after.event: unknown event "tool.start"; the nearest known one is "tool.started"',
    ),
    ("tool: book_table, by", "tool: cook, by", '10: caller[1].after.tool: unknown tool "cook"; accepted is book_table'),
    (
        "tool: book_table, by",
        "tols: x, by",
        "10: caller[1].after.tols: tool.started has no such field; accepted is "
        "call, tool, side_effect, effect or epoch",
    ),
    (
        "event: tool.started, tool: book_table",
        "event: session.ended",
        "10: caller[1].after.event: session.ended cannot "
        "come before this line: it ends the session; accepted is an event during it",
    ),
    (
        "event: tool.started, tool: book_table",
        "event: caller.started, line: 2",
        "10: caller[1].after.event: "
        "caller.started with line 2 cannot come before this line: line 2 does not come before line 2; accepted is the "
        "number of one that does, from 1",
    ),
    (
        "event: tool.started, tool: book_table",
        "event: caller.ended, nth: 2",
        "10: caller[1].after.event: caller.ended "
        "cannot come before this line: only 1 of the lines before it are spoken; accepted is nth up to 1",
    ),
    (
        "event: tool.started, tool: book_table",
        "event: confirm.taken",
        "10: caller[1].after.event: confirm.taken cannot "
        "come before this line: no tool has confirm; accepted is an event that the gate is not needed for",
    ),
    (
        "at: 500ms",
        "after: {event: tool.started}",
        "9: caller[0].after.event: tool.started cannot come before this line: "
        "nobody has spoken yet; accepted is session.started, or a line before this one",
    ),
    (
        "calls: [{book_table: {day: friday}}]",
        "text_after: x",
        "10: caller[1].after.event: tool.started with tool "
        "book_table cannot come before this line: the script calls no tool; accepted is an event that no tool "
        "is needed for",
    ),
    (", at: 500ms}", "}", "9: caller[0]: neither at nor after is given; accepted is one of them"),
    ('say: "Wait."', "hang_up: false", "10: caller[1]: the line says nothing; accepted is say, wav or hang_up"),
    (
        'say: "Wait."',
        "hang_up: true, transcript: a",
        "10: caller[1].transcript: the line says nothing; accepted is transcript beside say or wav",
    ),
    (
        "kind: side_effect",
        "repeatable: true",
        "6: tools.book_table.repeatable: a read_only tool has repeatable; accepted is repeatable on a side_effect",
    ),
    (
        '{text: "Done."}',
        "{calls: [{tool: book_table, unknown: true}]}",
        '13: llm[1].calls[0]: the tool "book_table" exists; accepted is unknown: true on one that does not',
    ),
    (
        "expect:\n",
        "vad: {on_db: -50}\nexpect:\n",
        "14: vad.off_db: -46 is above on_db -50; accepted is an off_db no greater",
    ),
    (
        "expect:\n",
        "vad: {hangover: 30ms}\nexpect:\n",
        "14: vad.hangover: 30000us is no number of frames; accepted is a multiple of 20ms",
    ),
    (
        "expect:\n",
        "session: {max_duration: 0s}\nexpect:\n",
        "14: session.max_duration: found 0us; accepted is a duration above zero",
    ),
    (
        "expect:\n",
        "invariants: {off: [quiet]}\nexpect:\n",
        '14: invariants.off[0]: unknown invariant "quiet"; the nearest known one is "quiet_end"',
    ),
    ('say: "Wait."', 'say: " "', "10: caller[1].say: found only spaces; accepted is a text to say"),
    (
        'say: "Wait."',
        "say: a, for: 1s",
        "10: caller[1].for: a line at level audio lasts as long as its audio; accepted is level: decision",
    ),
    (
        "latency: 1s",
        "parameters: {type: objekt}",
        '7: tools.book_table.parameters: the top level has to say "type": "object"; accepted is a JSON Schema of an '
        "object, draft 2020-12",
    ),
    (
        "kind: side_effect",
        "confirm: true",
        "6: tools.book_table.confirm: a read_only tool has confirm; accepted is confirm on a side_effect",
    ),
]


@pytest.mark.parametrize(("found", "instead", "sentence"), [*STRUCTURE, *SENSE])
def test_one_thing_wrong_is_one_sentence_with_its_line_and_key(found: str, instead: str, sentence: str) -> None:
    assert found in GOOD
    assert sentences(GOOD.replace(found, instead, 1)) == [f"bad.yaml:{sentence}"]


def in_rules(rules: str) -> str:
    return f"scenario: x\ntools: {{book: {{}}}}\nllm:\n  rules:\n{rules}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            in_rules("  - {when: {result: {tool: bok, is: ok}}, text: a}\n"),
            '5: llm.rules[0].when.result: unknown tool "bok"; the nearest known one is "book"',
        ),
        (
            in_rules("  - {when: {user_matches: '('}, text: a}\n"),
            '5: llm.rules[0].when.user_matches: found "("; accepted is a regular expression',
        ),
        (
            in_rules("  - {when: {round: 1}, calls: [{bok: {}}]}\n"),
            '5: llm.rules[0].calls[0]: unknown tool "bok"; the nearest known one is "book" (unknown: true '
            "if that is meant)",
        ),
        (
            in_rules("  - {when: {}}\n  rounds: [{text: a}]\n"),
            "3: llm: rounds and rules are given together; accepted is one of them",
        ),
        (
            "scenario: x\nllm: {rounds: [{text: a}], else: {text: b}}\n",
            "2: llm.else: else stands without rules; accepted is else after rules",
        ),
        (
            "scenario: x\ntools: {book: {}}\nllm: {behaviour: naive, tool: bok}\n",
            '3: llm.tool: unknown tool "bok"; the nearest known one is "book"',
        ),
        (
            "scenario: x\ntools: {book: {results: [{error: a, crash: b}]}}\n",
            "2: tools.book.results[0]: error and crash are given together; accepted is one of result, error and crash",
        ),
        (
            "scenario: x\ntools: {book: {}}\nexpect: {order: [{kind: tool.started, tool: bok}]}\n",
            '3: expect.order[0].tool: unknown tool "bok"; the nearest known one is "book"',
        ),
        (
            "scenario: x\ntools: {confirm_pending: {}}\n",
            "2: tools.confirm_pending: this name is the engine's own; accepted is another one",
        ),
        (
            "scenario: x\nagent: {filler: off}\ncaller:\n- {say: a, at: 1s}\n- {say: b, after: filler.spoken}\n",
            "5: caller[1].after.event: filler.spoken cannot come before this line: the filler is off; accepted is an "
            "event that a filler is not needed for",
        ),
        (
            "scenario: x\ncaller:\n- {say: a, level: decision, wav: b.wav, at: 1s}\n",
            "3: caller[0].wav: a line at level decision has no audio; accepted is wav at level audio",
        ),
        (
            "scenario: x\nexpect: {events: [{kind: cut}]}\n",
            '2: expect.events[0].kind: unknown event "cut"; the nearest known one is "playout.cut"',
        ),
        (
            "scenario: x\nexpect: {events: [{kind: stt.final, between: [2s, 1s]}]}\n",
            "2: expect.events[0].between: 2s is after 1s; accepted is the earlier instant first",
        ),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(text: str, sentence: str) -> None:
    assert f"bad.yaml:{sentence}" in sentences(text)


def test_several_things_wrong_are_a_sentence_each_in_the_order_of_the_file() -> None:
    assert sentences("scenario: x\ncaller:\n- {say: a, at: 5}\nsed: 7\nllm:\n- {txt: a}\n") == [
        f"bad.yaml:3: caller[0].at: 5 has no unit; accepted is {UNITS}",
        'bad.yaml:4: sed: unknown key "sed"; the nearest known one is "seed"',
        'bad.yaml:6: llm[0].txt: unknown key "txt"; the nearest known one is "text"',
    ]


def test_two_lines_that_overlap_are_refused_at_the_later_one() -> None:
    text = (
        "scenario: x\ncaller:\n- {say: first, at: 1s, level: decision, for: 400ms}\n"
        "- {say: second, at: 1399999us, level: decision, for: 1s}\n"
    )
    assert sentences(text) == [
        "bad.yaml:4: caller[1].at: 1.399999s is inside caller[0], which is spoken from 1s to 1.4s; "
        "accepted is one line after another"
    ]
    assert len(load_text(text.replace("1399999us", "1.4s")).caller) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "bad.yaml: it is empty; accepted is a mapping with scenario, caller and llm"),
        ("- a\n", "bad.yaml:1: found a list of 1; accepted is a mapping with scenario, tools, caller, llm and expect"),
        ("a: b: c\n", "bad.yaml:1: mapping values are not allowed here; accepted is YAML"),
        ("scenario: x\nseed: 1\nseed: 2\n", "bad.yaml:3: seed: the key is in line 2 already; accepted is once"),
        ("scenario: x\n1: y\n", "bad.yaml:2: found the key 1; accepted is a text, in quotes"),
        ("scenario: x\n? [a]\n: y\n", "bad.yaml:2: found a key that is a mapping or a list; accepted is a text"),
        (
            "scenario: !!python/object/apply:os.system [ls]\n",
            "bad.yaml:1: found the tag !!python/object/apply:os.system; accepted is plain data without tags",
        ),
        (
            "scenario: x\nseed: " + "9" * 30 + "\n",
            "bad.yaml:2: seed: found a number of 30 digits; accepted is up to 18",
        ),
        ("a: " + "[" * 60 + "]" * 60, "bad.yaml:1: nested more than 40 deep; accepted is up to 40"),
        ("a: &a [*a]\n", "bad.yaml:1: nested more than 40 deep; accepted is up to 40"),
        (
            'scenario: "\\ud83d"\n',
            "bad.yaml:1: scenario: found half of a surrogate pair; accepted is text that is Unicode",
        ),
    ],
)
def test_text_that_is_no_plain_yaml_is_refused(text: str, sentence: str) -> None:
    assert sentences(text) == [sentence]


def test_a_yaml_bomb_is_refused_before_it_goes_off() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert sentences(bomb) == [
        "bad.yaml:1: more than 20000 values, aliases counted as what they stand for; accepted is up to 20000"
    ]


def test_a_long_or_a_deep_file_is_given_up_where_it_passes_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_VALUES", 100)
    assert sentences("a:\n" + "- x\n" * 150 + "}\n") == [
        "bad.yaml:101: more than 100 values, aliases counted as what they stand for; accepted is up to 100"
    ]
    assert sentences("a: " + "[" * 50_000) == ["bad.yaml:1: nested more than 40 deep; accepted is up to 40"]


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert refused(path) == [f"{path}: it has 104857600 bytes; accepted is a scenario of up to 1048576 bytes"]


def test_what_is_no_readable_file_is_refused(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"scenario: x\nabout: caf\xe9\n")
    assert refused(latin) == [f"{latin}:2: found bytes that are no UTF-8; accepted is text in UTF-8"]
    assert refused(tmp_path) == [f"{tmp_path}: it is not a file; accepted is a scenario file"]
    gone = tmp_path / "gone.yaml"
    assert refused(gone) == [f"{gone}: there is no such file; accepted is a scenario file or a built-in scenario"]


def test_an_unknown_name_is_answered_with_the_nearest_built_in_one() -> None:
    assert refused("slow_tool_filer") == [
        'slow_tool_filer: unknown scenario "slow_tool_filer"; the nearest known one is "slow_tool_filler"; '
        "a path to a file is accepted too"
    ]


def test_json_is_read_too_and_its_faults_have_lines() -> None:
    assert load_text('{"scenario": "x",\n\t"about": "\\ud83d\\ude00"}', "x.json").about == "\U0001f600"
    assert sentences('{\n\t"scenario": "x",\n\t"sed": 1\n}', "x.json") == [
        'x.json:3: sed: unknown key "sed"; the nearest known one is "seed"'
    ]
    assert sentences('{"scenario": }', "x.json") == ["x.json:1: Expecting value; accepted is JSON"]
    assert sentences('{"seed": NaN}', "x.json") == ["x.json: found NaN; accepted is JSON"]


def with_recording(wav: str) -> str:
    return f"scenario: x\ncaller:\n- {{say: hello, wav: {wav}, at: 1s}}\n"


@pytest.mark.parametrize("wav", ["../out.wav", "/etc/passwd", "a/../../out.wav", "'C:\\x.wav'", "link.wav"])
def test_a_recording_outside_the_folder_is_refused(tmp_path: Path, wav: str) -> None:
    folder = tmp_path / "call"
    folder.mkdir()
    (tmp_path / "out.wav").write_bytes(b"")
    os.symlink(tmp_path / "out.wav", folder / "link.wav")
    assert sentences(with_recording(wav), folder=folder) == [
        f'bad.yaml:3: caller[0].wav: "{wav.strip(chr(39))}" leaves the scenario\'s folder; accepted is a path inside it'
    ]


def test_a_recording_that_is_missing_or_has_no_folder_is_refused(tmp_path: Path) -> None:
    assert sentences(with_recording("a.wav"), folder=tmp_path) == [
        'bad.yaml:3: caller[0].wav: there is no file "a.wav"; accepted is a WAV or FLAC file in the scenario\'s folder'
    ]
    assert sentences(with_recording("a.wav")) == [
        'bad.yaml:3: caller[0].wav: "a.wav" has no folder to be in; accepted is a recording in a scenario that is '
        "a file"
    ]


def test_a_recording_that_is_no_audio_is_refused_by_the_name_the_scenario_gives_it(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"not audio")
    with wave.open(str(tmp_path / "b.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
    for name in ("a.wav", "b.wav"):
        (sentence,) = sentences(with_recording(name), folder=tmp_path)
        assert sentence.startswith(f"bad.yaml:3: caller[0].wav: {name}: ")
        assert str(tmp_path) not in sentence


def test_a_recording_in_the_folder_is_accepted_and_lasts_as_long_as_its_samples(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(b"\1\0" * 16_000)
    second = "- {say: again, level: decision, for: 1s, at: 1999ms}\n"
    assert sentences(with_recording("a.wav") + second, folder=tmp_path) == [
        "bad.yaml:4: caller[1].at: 1.999s is inside caller[0], which is spoken from 1s to 2s; "
        "accepted is one line after another"
    ]


def test_one_clip_cannot_say_two_texts() -> None:
    data = {
        "scenario": "clip",
        "agent": {"filler": {"phrases": ["One moment.", "Just a second."], "clip": "moment"}},
        "caller": [{"say": "Hi.", "at": "1s"}],
        "llm": [{"text": "Hello."}],
    }
    with pytest.raises(ScenarioError) as refusal:
        Scenario.from_dict(data)
    assert refusal.value.sentences == (
        'agent.filler.phrases[1]: clip moment says "One moment." and not "Just a second."; accepted is a clip for each '
        "text",
    )


def test_a_value_that_does_not_fit_is_shown_as_it_was_set() -> None:
    scenario = load("slow_tool_filler")
    with pytest.raises(ScenarioError) as problem:
        scenario.with_value("agent.filler", {"delay": "1s", "per_tool": True, "phrases": ["Ähm."]})
    assert problem.value.sentences[0].startswith(
        'agent.filler={"delay": "1s", "per_tool": true, "phrases": ["Ähm."]}: agent.filler: delay and per_tool '
    )
