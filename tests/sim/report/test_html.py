"""The page of a session: what is in it, and how it behaves in a real browser."""

from __future__ import annotations

import json
import re

import pytest

from bargein import sim
from bargein.sim.kernel.clock import Limits
from bargein.sim.lab.invariants import Violation
from bargein.sim.lab.session import run_plan
from bargein.sim.report.html import context_changes, page
from bargein.sim.report.lanes import Look, lanes
from bargein.sim.scenario.build import Plan
from tests.sim.report.chromium import Chromium, find_chromium

CUT_US = 4_660_000


@pytest.fixture(scope="module")
def result():
    """A call with a violation planted at the instant of its barge-in."""
    found = sim.run("barge_in_during_booking")
    found.violations.append(Violation("stop_bound", CUT_US, "a planted one", 31))
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_chromium()
    if program is None:
        pytest.skip("no chromium is installed")
    found = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def file(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "call.html"
    path.write_text(page(result), encoding="utf-8")
    return path


@pytest.fixture
def tab(browser, file):
    browser.open(file)
    return browser


def embedded(text):
    return json.loads(re.search(r'<script type="application/json" id="session">(.*?)</script>', text)[1])


# -- what is in it -----------------------------------------------------------------------------------------------


def test_the_context_is_told_as_what_happened_to_it(interrupted_booking):
    changes = context_changes(interrupted_booking, {"t1.0": "it was cut"}, {"t1.0": "t1.0 book_table {}"})
    short = [(each["t"], each["message"], each.get("role"), each["text"], each.get("calls")) for each in changes]
    assert short == [
        (0, 0, "system", "You book tables.", []),
        (2_650_000, 1, "user", "A table for two on Friday, please.", []),
        (3_100_000, 2, "assistant", "Let me book that for you.", ["t1.0 book_table {}"]),
        (5_013_000, 3, "tool", "it was cut", []),
        (5_013_000, 4, "assistant", "One moment, please.", []),
        (5_020_000, 4, None, "One moment,", None),
        (6_150_000, 5, "system", "It was booked.", []),
        (6_150_000, 6, "user", "Wait, make it three.", []),
        (6_500_000, 7, "assistant", "Sorry, for three then.", ["t2.0"]),
        (7_300_000, 8, "tool", "", []),
        (7_750_000, 9, "assistant", "Done. For three.", []),
    ]


def test_a_message_that_was_never_heard_leaves_the_context(story):
    story.push(0, "assistant", "Well.", "answer").at(20).add("context.removed", 0)
    assert context_changes(story.records)[1] == {"t": 20_000, "message": 0, "removed": True}


def test_the_same_session_gives_the_same_page(result):
    assert page(result) == page(result)


def test_everything_it_needs_is_in_it(result):
    text = page(result)
    assert set(re.findall(r'(?:src|href)="(.*?)[,"]', text)) == {"data:audio/wav;base64", "data:"}
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
    assert re.findall(r"@import|url\((?!#)", text) == []
    assert "default-src 'none'" in text


def test_the_page_knows_every_look_of_the_lanes(result):
    text = page(result)
    assert [look for look in Look if f'"{look}"' not in text.split("<script>")[1]] == []


def test_a_session_that_could_not_go_on_has_a_page_up_to_there():
    result = run_plan(Plan(sim.load("orphan_replay")), limits=Limits(events=20))
    session = embedded(page(result))
    assert (session["ok"], session["findings"][0]["kind"]) == (False, "violation")
    assert session["findings"][0]["t"] == session["end_us"] == result.virtual_us


def test_what_people_say_cannot_become_part_of_the_page(call):
    text = page(sim.run(call("Sure.</script><b>{{style}}</b>", scenario="call", about="<i>&amp;")))
    assert text.count("</script>") == 2
    assert "<b>" not in text.split('id="session">')[1].split("</script>")[0]
    session = embedded(text)
    assert session["about"] == "<i>&amp;"
    assert [each["text"] for each in session["context"]] == ["Hi.", "Sure.</script><b>{{style}}</b>"]


def test_findings_know_the_instant_to_look_at(call):
    expect = {"events": [{"kind": "turn.user", "at": "400ms"}, {"kind": "turn.barge_in", "at": "1s"}, "tool.started"]}
    found = embedded(page(sim.run(call("Sure.", expect={**expect, "counts": {"turn.user": 1}}))))["findings"]
    assert [(each["name"], each["ok"], each["t"]) for each in found] == [
        ("events[0]", True, 400_000),
        ("events[1]", False, 1_000_000),
        ("events[2]", False, None),
        ("counts.turn.user", True, None),
    ]


# -- how it behaves ----------------------------------------------------------------------------------------------


def now(tab):
    return round(float(tab.value("document.getElementById('now').textContent").split()[0]) * 1e6)


def view(tab):
    return tab.value("[+lanes.dataset.from, +lanes.dataset.to]".replace("lanes", "document.getElementById('lanes')"))


def box(tab, selector):
    """The middle of an element, and its size."""
    script = f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect(); "
    return tab.value(script + "return [b.x + b.width / 2, b.y + b.height / 2, b.width, b.height]; })()")


def middle(tab):
    """A whole pixel near the middle of the lanes, and its share of what is in view."""
    x, y, width, _ = box(tab, "#lanes")
    left = x - width / 2 + 64
    return int(x), int(y), (int(x) - left) / (width - 78)


def context(tab):
    return tab.value("[...document.querySelectorAll('#context .text')].map(each => each.firstChild?.textContent ?? '')")


def test_it_loads_nothing_and_fails_at_nothing(tab, file):
    asked = [request["request"]["url"] for request in tab.seen("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
    assert tab.seen("Runtime.exceptionThrown") == []
    assert tab.seen("Log.entryAdded") == []
    assert tab.value("document.getElementById('verdict').textContent") == "failed"


def test_every_bar_of_the_lanes_is_drawn(tab, result):
    drawn = tab.value("[...document.querySelectorAll('[data-bar]')].length")
    assert drawn == len(lanes(result.records).bars)


def test_a_click_seeks_the_sound_and_the_context(tab):
    x, y, share = middle(tab)
    tab.click(x, y)
    assert abs(now(tab) - share * 11_541_063) <= 1
    assert abs(tab.value("document.getElementById('audio').currentTime") * 1e6 - now(tab)) <= 1
    assert context(tab) == [
        "You book tables at a restaurant.",
        "A table for two on Friday, please.",
        "Let me book",
        '{"error":"interrupted","tool":"book_table","detail":"the user interrupted before the result arrived"}',
    ]


def test_what_was_not_heard_is_struck_out(tab):
    tab.value("document.querySelector('#findings button').click()")
    assert tab.value("[...document.querySelectorAll('#context del')].map(each => each.textContent)") == [
        " that for you."
    ]
    tab.press("p")
    assert now(tab) == 4_470_000
    assert context(tab)[-1] == "Let me book that for you."


def test_a_violation_jumps_to_its_place(tab):
    tab.press("+")
    tab.press("+")
    tab.press("+")
    assert view(tab) == [0, round(11_541_063 / 8)]
    tab.value("document.querySelector('#findings button').scrollIntoView()")
    tab.click(*box(tab, "#findings button")[:2])
    assert now(tab) == CUT_US
    first, last = view(tab)
    assert first < CUT_US < last
    assert tab.value("document.querySelectorAll('[data-finding]').length") == 1


def test_the_wheel_zooms_round_the_pointer_and_0_shows_all(tab):
    x, y, share = middle(tab)
    tab.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240)
    first, last = view(tab)
    assert abs((last - first) - 11_541_063 / 2) <= 1
    assert abs(first + share * (last - first) - share * 11_541_063) <= 2
    tab.press("0")
    assert view(tab) == [0, 11_541_063]


def test_a_drag_moves_the_view_and_does_not_seek(tab):
    tab.press("+")
    x, y, _, _ = box(tab, "#lanes")
    tab.mouse("mousePressed", x, y, button="left", clickCount=1)
    tab.mouse("mouseMoved", x - 200, y, button="left")
    tab.mouse("mouseReleased", x - 200, y, button="left", clickCount=1)
    first, last = view(tab)
    assert first > 500_000
    assert abs((last - first) - 11_541_063 / 2) <= 1
    assert now(tab) == 0


def test_a_bar_says_what_it_is_under_the_pointer(tab):
    bar = "[data-bar='2']"
    tab.mouse("mouseMoved", *box(tab, bar)[:2])
    text = tab.value("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")
    found = tab.value("JSON.parse(document.getElementById('session').textContent).bars[2]")
    lane, _, start, end, look, label = found
    assert text.split("\n") == [
        label or look,
        f"{lane}: {look}. {start / 1e6:.6f} s to {end / 1e6:.6f} s, {(end - start) / 1e3:g} ms",
    ]


def test_keys_step_by_frames_seconds_and_events(tab):
    steps = []
    for key, shift in (("ArrowRight", False), ("ArrowRight", True), ("ArrowLeft", False), ("n", False), ("p", False)):
        tab.press(key, shift=shift)
        steps.append(now(tab))
    assert steps == [20_000, 1_020_000, 1_000_000, 2_614_188, 500_000]
    assert tab.value("document.querySelector('#story [aria-current]').innerText.split('\\n').at(-1)") == (
        'caller: "A table for two on Friday, please."'
    )
    assert tab.value("document.getElementById('lanes').getAttribute('aria-valuenow')") == "500000"


def test_the_playhead_follows_the_sound(tab):
    reached = (
        "new Promise(done => { const look = () => audio.currentTime > .15 ? done() : requestAnimationFrame(look); "
    )
    tab.press(" ")
    tab.value(reached + "look(); })")
    tab.press(" ")
    tab.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    heard = tab.value("audio.paused && audio.currentTime") * 1e6
    assert heard > 150_000
    assert abs(now(tab) - heard) <= 1_000


def test_it_is_dark_where_the_reader_is(tab):
    paper = "getComputedStyle(document.body).backgroundColor"
    seen = []
    for scheme in ("light", "dark"):
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen.append(tab.value(paper))
    tab.call("Emulation.setEmulatedMedia", features=[])
    assert seen == ["rgb(251, 251, 250)", "rgb(20, 23, 26)"]
