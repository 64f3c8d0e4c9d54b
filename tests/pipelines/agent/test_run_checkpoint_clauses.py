"""What is refused, why, and that nothing of the destination has changed: a case for every clause and every cause."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_restore import load_runs, validate_runs
from bargein.pipelines.agent.saved_errors import CheckpointError
from bargein.pipelines.agent.saved_graph import save_runs
from tests.pipelines.agent.checkpoint_kit import destination, edited, full_world, refusal, reread, said

Change = Callable[[list[Any]], object]


@pytest.fixture(scope="module")
def checkpoint() -> RunCheckpoint:
    return reread(save_runs(full_world().runs))


def of(entities: list[Any], kind: str, number: int = 0) -> Any:
    return [each for each in entities if each["kind"] == kind][number]


# -- each clause ----------------------------------------------------------------------------------------------------

# In the document: handlers 0 and 1, the agent 2; the first run 3 with its messages 4 (parts 5, 6) and 7 (8, 9, 10), its
# turn 11 and the effects 12 to 15, of which the last is held; the second run 16 with turn 21; the third 23 with its
# messages 24, 26 and 28 (a result 29 that holds 30), its turn 31 and the effects 32 and 33.

CLAUSES: dict[str, tuple[Change, str]] = {
    "an unknown kind": (
        lambda entities: of(entities, "part").update(kind="song"),
        "UnknownKind: the checkpoint: entities[5].kind: found 'song'; accepted is one of handler, agent, run,",
    ),
    "a handler that has more": (
        lambda entities: of(entities, "handler").update(secret="s"),
        "UnknownField: the checkpoint: entities[0].secret: an entity of kind handler has no secret; accepted is",
    ),
    "a ready mark on a message": (
        lambda entities: of(entities, "message").update(ready=True),
        "UnknownField: the checkpoint: entities[4].ready: an entity of kind message has no ready; accepted is",
    ),
    "a prompt on a turn": (
        lambda entities: of(entities, "turn").update(prompt=None),
        "UnknownField: the checkpoint: entities[11].prompt: an entity of kind turn has no prompt; accepted is",
    ),
    "a part without an id": (
        lambda entities: of(entities, "part").pop("id"),
        "BadValue: the checkpoint: entities[5]: id is missing; it was edited",
    ),
    "a status on a text": (
        lambda entities: of(entities, "part").update(status="Ok"),
        "BadValue: the checkpoint: entities[5].status: it is that of a tool's result, and stands on a text part",
    ),
    "a status that does not exist": (
        lambda entities: of(entities, "part").update(status="Fine"),
        "BadValue: the checkpoint: entities[5].status: found 'Fine'; accepted is one of Ok, Error, Refused,",
    ),
    "two parts of one id": (
        lambda entities: of(entities, "part", 1).update(id="r1:0"),
        "BadValue: the checkpoint: entities[6].id: r1 has two parts r1:0",
    ),
    "an id that was not given yet": (
        lambda entities: of(entities, "part").update(id="r1:99"),
        "BadValue: the checkpoint: entities[5].id: found 'r1:99'; accepted is r1: and a number below",
    ),
    "an id of another run": (
        lambda entities: of(entities, "part").update(id="r2:0"),
        "BadValue: the checkpoint: entities[5].id: found 'r2:0'; accepted is r1: and a number below",
    ),
    "a value of the wrong sort": (
        lambda entities: of(entities, "part")["part"].update(text=7),
        "BadValue: the checkpoint: entities[5].part.text: found int; accepted is str",
    ),
    "a value that lacks a field": (
        lambda entities: of(entities, "part")["part"].pop("text"),
        "BadValue: the checkpoint: entities[5].part: text is missing; a TextPart needs it",
    ),
    "a value with a field too many": (
        lambda entities: of(entities, "part")["part"].update(shout=True),
        "BadValue: the checkpoint: entities[5].part.shout: a TextPart has no shout; accepted is text, annotations,",
    ),
    "a value of no class of ours": (
        lambda entities: of(entities, "part").update(part={"$": "os.system", "command": "true"}),
        "BadValue: the checkpoint: entities[5].part: found 'os.system', which is no value of a run; nothing of that",
    ),
    "a choice that does not exist": (
        lambda entities: of(entities, "run")["phase"].update({"is": "Dreaming"}),
        "BadValue: the checkpoint: entities[3].phase: found 'Dreaming'; accepted is one of LoadingMemory, Assembling,",
    ),
    "bytes that are none": (
        lambda entities: of(entities, "run").update(prompt={"$": "bytes", "base64": "###"}),
        "BadValue: the checkpoint: entities[3].prompt: these are no bytes; accepted is base64",
    ),
    "a role that does not exist": (
        lambda entities: of(entities, "message").update(role="judge"),
        "BadValue: the checkpoint: entities[4].role: found 'judge'; accepted is one of system, user, assistant, tool",
    ),
    "a run number that was not given yet": (
        lambda entities: of(entities, "run").update(seq=4),
        "BadValue: the checkpoint: entities[3].seq: found 4; accepted is a number of its own below counters.next_run",
    ),
    "two runs of one number": (
        lambda entities: of(entities, "run", 1).update(seq=1),
        "BadValue: the checkpoint: entities[16].seq: found 1; accepted is a number of its own below",
    ),
    "no kind of effect": (
        lambda entities: of(entities, "effect").update(asks="magic"),
        "BadValue: the checkpoint: entities[12].asks: found 'magic'; accepted is one of completion, tool_call,",
    ),
    "two effects in one place": (
        lambda entities: of(entities, "effect", 1).update(place=0),
        "BadValue: the checkpoint: entities[13].place: r1 has two effects at 0",
    ),
    "a place before all": (
        lambda entities: of(entities, "effect").update(place=-1),
        "BadValue: the checkpoint: entities[12].place: found -1; accepted is a whole number from 0",
    ),
    "another turn's commit": (
        lambda entities: of(entities, "turn", 2).update(commit=7),
        "BadValue: the checkpoint: entities[31].commit: found 7; accepted is 1, the round's own number",
    ),
    "a medium with its bytes in it": (
        lambda entities: of(entities, "part", 1)["part"].update(source={"$": "Base64", "text": "QQ=="}),
        "BadValue: the checkpoint: entities[6].part.source: a stored medium points to its payload; it was edited",
    ),
    "a result with its items in it": (
        lambda entities: _result(entities)["part"].update(items=[{"$": "TextPart", "text": "x"}]),
        "BadValue: the checkpoint: entities[29].part.items: what a result holds hangs on it; accepted is none",
    ),
    "a stream's items that are none": (
        lambda entities: of(entities, "turn", 1).update(items=[{"$": "PartDone", "part": "x"}]),
        "BadValue: the checkpoint: entities[21].items[0].part: found str; accepted is TextPart or ImagePart or",
    ),
    "a handler that is described badly": (
        lambda entities: of(entities, "handler")["descriptor"].update(family="magic"),
        "BadValue: the checkpoint: entities[0].descriptor: found the family 'magic' and the layers []; it was edited",
    ),
    "a handler that is bound twice": (
        lambda entities: of(entities, "handler", 1).update(of(entities, "handler")),
        "BadValue: the checkpoint: entities[1].key: golden/model:default is bound twice",
    ),
    "a parent that comes later": (
        lambda entities: of(entities, "part").update(parent=6),
        "BadParent: the checkpoint: entities[5].parent: found 6; accepted is the position of an entity before it",
    ),
    "its own parent": (
        lambda entities: of(entities, "message").update(parent=4),
        "BadParent: the checkpoint: entities[4].parent: found 4; accepted is the position of an entity before it",
    ),
    "a parent that is none": (
        lambda entities: of(entities, "message").update(parent="run"),
        "BadParent: the checkpoint: entities[4].parent: found 'run'; accepted is the position of an entity before it",
    ),
    "a parent of another kind": (
        lambda entities: of(entities, "message").update(parent=2),
        "BadParent: the checkpoint: entities[4].parent: entity 2 is of kind agent, which does not fit",
    ),
    "a handler for a parent": (
        lambda entities: of(entities, "part").update(parent=0),
        "BadParent: the checkpoint: entities[5].parent: entity 0 is of kind handler, which does not fit",
    ),
    "a part in a text": (
        lambda entities: of(entities, "part", 1).update(parent=5),
        "BadParent: the checkpoint: entities[6].parent: it hangs on a text part, which holds none",
    ),
    "a run without an agent": (
        lambda entities: of(entities, "run").update(agent=0),
        "BadLink: the checkpoint: entities[3].agent: entity 0 is of kind handler, which does not fit",
    ),
    "a message of another run": (
        lambda entities: of(entities, "turn", 1).update(assistant=7),
        "BadLink: the checkpoint: entities[21].assistant: entity 7 is a message of another run than r2",
    ),
    "a message of another role": (
        lambda entities: of(entities, "turn").update(assistant=4),
        "BadLink: the checkpoint: entities[11].assistant: entity 4 is of role user; accepted is a message of",
    ),
    "results that are none": (
        lambda entities: of(entities, "turn", 2).update(results=24),
        "BadLink: the checkpoint: entities[31].results: entity 24 holds more than results of tools",
    ),
    "a commit without results": (
        lambda entities: of(entities, "turn", 2).update(results=None),
        "BadLink: the checkpoint: entities[31].results: a round is committed with the message that has its results;",
    ),
    "an edit of another run's part": (
        lambda entities: entities.append({"kind": "edit", "parent": 31, "target": 5, "text": "x"}),
        "BadLink: the checkpoint: entities[34].target: entity 5 is a part of another run",
    ),
    "an edit of a message": (
        lambda entities: entities.append({"kind": "edit", "parent": 31, "target": 24, "text": "x"}),
        "BadLink: the checkpoint: entities[34].target: entity 24 is of kind message, which does not fit",
    ),
    "an invalid call that was never streamed": (
        lambda entities: entities.append(
            {"kind": "invalid_call", "parent": 31, "block": 3}
            | {"call": {"$": "CallPart", "id": "c", "name": "n", "arguments": {}}}
        ),
        "BadLink: the checkpoint: entities[34].block: found 3; the round's stream has 0 blocks",
    ),
    "a call in a user's message": (
        lambda entities: of(entities, "part").update(part=of(entities, "part", 2)["part"]),
        "BadContent: the checkpoint: entities[5]: parts[0]: found tool_call; a user message holds text, image,",
    ),
    "a sound in a result": (
        lambda entities: _item(entities).update(part={"$": "AudioPart", "source": {"$": "Url", "url": "u"}}),
        "BadContent: the checkpoint: entities[30]: parts[0].items[0]: found audio; a tool result holds text, image,",
    ),
    "a head on a user's message": (
        lambda entities: of(entities, "message").update(head={"$": "AssistantHead"}),
        "BadContent: the checkpoint: entities[4]: head: found one on a user message; only an assistant message",
    ),
    "a role that no run has": (
        lambda entities: of(entities, "message").update(role="tool"),
        "BadContent: the checkpoint: entities[4]: role tool: a run's message is one of system, user and assistant",
    ),
    "a hold without an owner": (
        lambda entities: of(entities, "effect", 3).update(holds={}),
        "BadHold: the checkpoint: entities[15].held: found True; its owners are none",
    ),
    "an owner without a hold": (
        lambda entities: of(entities, "effect", 3).update(held=False),
        "BadHold: the checkpoint: entities[15].held: found False; its owners are rig-ecs/batch",
    ),
    "a call without a slot": (
        lambda entities: of(entities, "effect", 2).update(slot=None),
        "BadHold: the checkpoint: entities[14].slot: found None; a round's call has its place in the batch, and",
    ),
    "a slot without a call": (
        lambda entities: of(entities, "effect").update(slot=0),
        "BadHold: the checkpoint: entities[12].slot: found 0; a round's call has its place in the batch, and nothing",
    ),
    "two calls in one slot": (
        lambda entities: of(entities, "effect", 2).update(slot=0),
        "BadHold: the checkpoint: entities[14].slot: the batch has two calls at 0",
    ),
    "a batch with a gap": (
        lambda entities: of(entities, "effect", 3).update(slot=7),
        "BadHold: the checkpoint: r1, turn 1: a call of the batch is missing",
    ),
    "a wait without a backoff": (
        lambda entities: of(entities, "effect", 2).update(release_in_us=7),
        "BadHold: the checkpoint: entities[14].release_in_us: rig-ecs/backoff does not hold it; there is nothing to",
    ),
    "an effect too few": (
        lambda entities: entities.pop(32),
        "BadValue: the checkpoint: r3: an effect is missing; accepted are places from 0 on without a gap",
    ),
    "a request that a batch holds": (
        lambda entities: of(entities, "effect").update(holds={"rig-ecs/batch": None}, held=True),
        "BadHold: the checkpoint: entities[12].holds: rig-ecs/batch holds it, and it is no call that waits in a batch",
    ),
    "a batch that nobody runs": (
        lambda entities: of(entities, "run")["phase"].update({"is": "Assembling"}),
        "BadHold: the checkpoint: entities[15].holds: rig-ecs/batch holds it, and it is no call that waits in a batch",
    ),
    "a payload that is not there": (
        lambda entities: of(entities, "part", 1)["part"]["source"].update(sha256="0" * 64),
        f"MissingBinary: the checkpoint: entities[6].part.source: payload {'0' * 64} is not among the binaries",
    ),
    "two effects of one id": (
        lambda entities: of(entities, "effect", 1).update(id=0),
        "IdTaken: the checkpoint: two effects have the id 0",
    ),
    "an id below all": (
        lambda entities: of(entities, "effect").update(id=-1),
        "IdTaken: the checkpoint: found the id -1",
    ),
    "no contract for what is open": (
        lambda entities: of(entities, "effect", 3).update(key="golden/tool:gone#7"),
        "MissingContract: the checkpoint: an effect for golden/tool:gone#7 is unfinished, and no handler of its key",
    ),
    "state of a host that is not here": (
        lambda entities: of(entities, "run").update(host={"notes": []}),
        "UnknownHostState: the checkpoint: entities[3].host.notes: nobody registered it here; accepted is nothing",
    ),
}


def _result(entities: list[Any]) -> Any:
    return next(each for each in entities if each["kind"] == "part" and each["part"]["$"] == "ResultPart")


def _item(entities: list[Any]) -> Any:
    return entities[entities.index(_result(entities)) + 1]


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_broken_clause_is_refused_by_name_and_the_destination_is_left_as_it_was(
    clause: str, checkpoint: RunCheckpoint
) -> None:
    change, told = CLAUSES[clause]
    broken = edited(checkpoint, change)
    assert said(refusal(destination(), broken)).startswith(told)
    with pytest.raises(CheckpointError, match=f"^{re.escape(told.partition(': ')[2])}"):
        validate_runs(broken, destination().runs)


def test_without_a_broken_clause_it_is_loaded_beside_what_is_there(checkpoint: RunCheckpoint) -> None:
    world = destination()
    load_runs(checkpoint, world.runs)
    assert list(world.runs.live) == [1, 2, 3, 10]
    assert list(world.runs.assets.digests) == [sha256(each).hexdigest() for each in (b"mine", b"picture")]
