"""The ten kinds of part: as plain data, in their messages, and in the store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bargein.pipelines.agent.assets import AssetLimits, BinaryAssets
from bargein.pipelines.agent.history import History, ResultStatus
from bargein.pipelines.agent.media_sources import Base64, ContentError, FileId, Literal, Raw, Stored, Unknown, Url
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import (
    AssistantHead,
    AudioPart,
    CallPart,
    DocumentPart,
    ImagePart,
    JsonPart,
    OpaquePart,
    ReasoningPart,
    ResultPart,
    RunMessage,
    TextPart,
    VideoPart,
    message_from_dict,
    part_from_dict,
    part_to_dict,
    user_message,
)

RESULT = ResultPart("c1", (TextPart("t"), ImagePart(Url("u"), "image/png"), JsonPart({"k": [1, None]})), "add", "p")
EACH = [
    TextPart("t", ("cite",), {"n": 1}),
    ImagePart(Base64("QQ"), "image/png", "high", {"o": 1}, {"n": 1}),
    AudioPart(Raw(b"\x00\x01"), "audio/wav"),
    VideoPart(FileId("f1")),
    DocumentPart(Unknown("lost")),
    CallPart("c1", "add", {"b": 1, "a": 2}, "p1", {"n": 1}),
    ReasoningPart("hm", "sealed", "r1", {"n": 1}),
    OpaquePart({"k": 1}),
    RESULT,
    JsonPart([1, "x"]),
]
USERS = [each for each in EACH if type(each) in (TextPart, ImagePart, AudioPart, VideoPart, DocumentPart, ResultPart)]


@pytest.mark.parametrize("part", EACH, ids=lambda part: part.type)
def test_every_kind_comes_back_from_plain_data(part: Any) -> None:
    assert part_from_dict(part_to_dict(part)) == part


def test_there_are_ten_kinds() -> None:
    assert sorted(part.type for part in EACH) == sorted(
        ["text", "image", "audio", "video", "document", "tool_call", "reasoning", "opaque", "tool_result", "json"]
    )


@pytest.mark.parametrize(
    "source", [Url("u"), FileId("f"), Literal("l"), Unknown("n"), Raw(b"x"), Base64("QQ"), Base64("QR==")]
)
def test_every_source_comes_out_of_the_store_as_it_went_in(source: Any) -> None:
    store = BinaryAssets()
    assert store.out(store.put(source)) == source
    part = ImagePart(source, "image/png", "low")
    assert part_from_dict(part_to_dict(part)) == part


@pytest.mark.parametrize("kind", [(Role.USER, tuple(USERS)), (Role.ASSISTANT, (EACH[0], EACH[5], EACH[6], EACH[7]))])
def test_what_is_written_is_read(kind: Any) -> None:
    message = RunMessage(*kind)
    history = History("r1", BinaryAssets())
    history.append(user_message("old"))
    history.write(0, message)
    assert (history.messages(), message_from_dict(message.to_dict())) == ((message,), message)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"type": "image"}, "p: source is missing; a image part needs it"),
        (
            {"type": "text", "text": "x", "items": []},
            "p.items: a text part has no items; accepted is text, annotations",
        ),
        (
            {"type": "tool_result", "call_id": "c", "items": [{"type": "tool_result", "call_id": "d", "items": []}]},
            "p.items[0]: found tool_result; a tool result holds text, image, json",
        ),
        (
            {
                "type": "tool_result",
                "call_id": "c",
                "items": [{"type": "audio", "source": {"from": "url", "url": "u"}}],
            },
            "p.items[0]: found audio; a tool result holds text, image, json",
        ),
        ({"type": "song"}, "p.type: found 'song'; accepted is one of text, image"),
    ],
)
def test_malformed_parts_are_refused_with_their_place(data: Any, said: str) -> None:
    with pytest.raises(ContentError) as caught:
        part_from_dict(data, "p")
    assert str(caught.value).startswith(said)


def test_a_role_may_not_hold_every_kind_and_only_an_answer_has_a_head() -> None:
    with pytest.raises(ContentError, match=r"^parts\[1\]: found tool_call; a user message holds text, image"):
        RunMessage(Role.USER, (TextPart("x"), CallPart("c", "add", {})))
    with pytest.raises(ContentError, match="only an assistant message has a head"):
        RunMessage(Role.USER, (), AssistantHead())
    with pytest.raises(ContentError, match="a run's message is one of system, user and assistant"):
        RunMessage(Role.TOOL, ())


def test_an_edit_changes_its_part_alone_and_what_was_read_before_stays() -> None:
    history = History("r1", BinaryAssets())
    history.append(user_message([TextPart("a"), TextPart("b"), TextPart("c")]))
    before = history.messages()
    history.edit(history.ids(0)[1], TextPart("B"))
    assert [part.text for part in history.read(0).parts] == ["a", "B", "c"]
    assert before == (user_message([TextPart("a"), TextPart("b"), TextPart("c")]),)
    with pytest.raises(ContentError, match="found tool_call; a user message"):
        history.edit(history.ids(0)[1], CallPart("c", "add", {}))
    assert history.read(0).text == "aBc"


def test_an_edit_reaches_what_a_tools_result_holds_and_nothing_else_of_it() -> None:
    history = History("r1", BinaryAssets())
    result = ResultPart("c", (TextPart("a"), JsonPart([1]), TextPart("c")), "add")
    history.append(RunMessage(Role.USER, (result, TextPart("said"))), [ResultStatus.ERROR, None])
    (part, said), items = history.ids(0), history.item_ids(history.ids(0)[0])
    history.edit(items[1], TextPart("b"))
    edited = ResultPart("c", (TextPart("a"), TextPart("b"), TextPart("c")), "add")
    assert history.read(0).parts == tuple([held.part for held in history.stored[0].parts]) == (edited, TextPart("said"))
    assert (history.ids(0), history.item_ids(part), history.statuses(0)) == ((part, said), items, ("Error", None))
    with pytest.raises(ContentError, match="found tool_call; a tool result holds text, image, json"):
        history.edit(items[1], CallPart("c", "add", {}))
    assert history.read(0).parts == (edited, TextPart("said"))


# -- the store ----------------------------------------------------------------------------------------------------


def test_the_same_bytes_are_kept_once_however_they_are_spelled() -> None:
    store = BinaryAssets()
    stored = [store.put(source) for source in (Raw(b"A"), Base64("QQ"), Base64("QQ=="), Base64("QR=="))]
    assert (len(store), store.retained_bytes, {each.sha256 for each in stored}) == (1, 1, set(store.digests))
    assert [store.out(each) for each in stored] == [Raw(b"A"), Base64("QQ"), Base64("QQ=="), Base64("QR==")]
    long = store.put(Base64("QUJD" * 1000 + "QQ="[:2]))
    assert isinstance(long, Stored)
    assert (len(long.tail), store.out(long)) == (2, Base64("QUJD" * 1000 + "QQ"))


def test_a_spelling_that_comes_again_is_not_decoded_again_while_it_is_remembered() -> None:
    store = BinaryAssets(max_indexed=1)
    for text in ("QQ==", "QQ==", "Qg==", "QQ=="):
        assert store.out(store.put(Base64(text))) == Base64(text)
    assert (store.decoded, len(store)) == (3, 2)


@pytest.mark.parametrize("text", ["###", "Q", "QQ=", "QQ===", "QUJDQ", "Q Q=", "Q-_="])
def test_what_is_no_base64_is_refused_and_nothing_is_kept(text: str) -> None:
    store = BinaryAssets()
    with pytest.raises(ContentError, match=r"^base64 of"):
        store.put(Base64(text))
    assert len(store) == 0


def test_the_limits_are_exact() -> None:
    assert AssetLimits() == AssetLimits(67108864, 268435456, 65536)
    store = BinaryAssets(AssetLimits(4, 6, 2))
    store.put(Raw(b"1234"))
    with pytest.raises(ContentError, match=r"^asset of 5 bytes: accepted are up to 4"):
        store.put(Raw(b"12345"))
    with pytest.raises(ContentError, match=r"^asset of 3 bytes: the store holds 4 of 6"):
        store.put(Raw(b"abc"))
    store.put(Raw(b"ab"))
    store.put(Raw(b"1234"))
    narrow = BinaryAssets(replace(AssetLimits(), max_assets=1))
    narrow.put(Raw(b"a"))
    with pytest.raises(ContentError, match=r"^one asset more: the store holds 1"):
        narrow.put(Raw(b"b"))


def test_only_collecting_drops_and_a_missing_root_drops_nothing() -> None:
    store = BinaryAssets(AssetLimits(4, 4, 9))
    first, other = History("r1", store), History("r2", store)
    for history in (first, other):
        history.append(user_message((ImagePart(Raw(b"aa")),)))
    store.put(Raw(b"bb"))
    first.stored.clear()
    with pytest.raises(ContentError):
        store.put(Raw(b"cc"))
    with pytest.raises(ContentError, match=r"^asset 00: it is not in the store"):
        store.collect([*other.digests(), "00"])
    assert len(store) == 2
    assert store.collect([*first.digests(), *other.digests()]) == 1
    assert (list(store.digests), store.retained_bytes) == (list(other.digests()), 2)
    store.put(Raw(b"cc"))
    other.stored.clear()
    assert store.collect(["f" * 64][:0]) == 2


def test_a_pin_keeps_what_no_content_uses() -> None:
    store = BinaryAssets()
    pinned = store.put(Raw(b"p"))
    assert isinstance(pinned, Stored)
    store.put(Raw(b"q"))
    assert (store.collect([pinned.sha256]), store.digests) == (1, (pinned.sha256,))
