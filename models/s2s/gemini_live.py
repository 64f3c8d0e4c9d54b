"""The wire of Gemini Live: one kind of message each way with the case in its key, and turns that are never announced.

The client learns that the user spoke from ``interrupted`` and from the transcription of it, and that a turn was taken
from the answer itself; it cannot say how much was heard, so that the provider goes on believing that all of it was. A
tool call ends what is said until every call has its response, and then the model goes on by itself. Schemas go under
``parametersJsonSchema``: the other field takes a subset, and a set-up with more is refused whole (tool contract, "Live
results").
Left out: resuming a session, calls that do not block, and audio as base64 (``wire``).
"""

from __future__ import annotations

from json import dumps, loads
from typing import Any

from bargein.models.s2s.wire import About, Message
from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallResult,
    CallsCancelled,
    Command,
    Configure,
    CreateResponse,
    LiveEvent,
    Note,
    Refused,
    ResponseEnded,
    ResponseStarted,
    Results,
    SpeechStarted,
    SpeechStopped,
    Transcript,
)
from bargein.pipelines.agent.request import Advert

__all__ = ["GeminiLiveWire"]

_SUBSET = frozenset({
    "type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties",
    "required", "minimum", "maximum", "minLength", "maxLength", "pattern", "anyOf",
})  # fmt: skip
"""What ``parameters`` takes of JSON Schema."""


class GeminiLiveWire:
    """One session's wire."""

    continues = True
    calls_last = True
    withdraws = True
    truncates = False

    def __init__(self) -> None:
        # The client's end.
        self._tag = ""  # of the request that the next content answers
        self._open = ""  # the response that is coming in
        self._responses = self._inputs = 0
        self._turn = 1  # of the user's that is the newest it knows of
        self._answered = 0  # the newest turn that it had an answer to
        self._calling = ""  # the response whose calls wait for their answers
        self._told = 0  # the newest turn of which the beginning was told
        self._asked: set[str] = set()  # its calls without an answer
        # The provider's end.
        self._held: list[dict[str, Any]] = []  # calls of the response that is being sent, which ends with them

    # -- the client's end ---------------------------------------------------------------------------------

    def encode(self, command: Command) -> list[Message]:
        match command:
            case Configure():
                tools = [{"functionDeclarations": [_declaration(each) for each in command.tools]}]
                setup = {"systemInstruction": {"parts": [{"text": command.system}]}, "tools": tools}
                return [{"setup": {**setup, "inputAudioTranscription": {}, "outputAudioTranscription": {}}}]
            case Results():
                self._asked.difference_update(each.call for each in command.results)
                return [
                    {"toolResponse": {"functionResponses": [_answer(each, command.quiet) for each in command.results]}}
                ]
            case Note():
                turn = {"role": "user", "parts": [{"text": command.text}]}
                return [{"clientContent": {"turns": [turn], "turnComplete": False}}]
            case CreateResponse():
                self._tag = command.tag
        return []

    def decode(self, message: Message) -> list[LiveEvent]:
        (case,) = message
        body = message[case]
        match case:
            case "toolCall":
                return self._calls(body["functionCalls"])
            case "toolCallCancellation":
                self._asked.difference_update(body["ids"])
                return [CallsCancelled(tuple(body["ids"]))]
            case "serverContent":
                return self._content(body)
            case "error":
                return [Refused(body["status"], body["message"])]
        return []

    def _content(self, body: dict[str, Any]) -> list[LiveEvent]:
        if "modelTurn" in body:
            speech = body["modelTurn"]["parts"][0]["inlineData"]["data"]
            text = body["outputTranscription"]["text"]
            opening = self._begin()
            return [*opening, AudioDelta(self._open, f"{self._open}_audio", speech, text)]
        if "inputTranscription" in body:
            self._inputs += 1
            turn = self._inputs
            self._turn = max(self._turn, turn)
            return [
                *([] if turn <= self._told else [SpeechStarted(turn)]),
                SpeechStopped(turn),
                Transcript(turn, body["inputTranscription"]["text"]),
            ]
        if "interrupted" in body:
            ended, self._open, self._tag, self._calling = self._open, "", "", ""
            self._turn = self._told = self._turn + 1
            cut: list[LiveEvent] = [ResponseEnded(ended, "cancelled", "interrupted")] if ended else []
            return [SpeechStarted(self._turn), *cut]
        if "turnComplete" in body and self._open:
            ended, self._open = self._open, ""
            return [ResponseEnded(ended)]
        return []

    def _begin(self) -> list[LiveEvent]:
        """The first content of a response is all that tells of its beginning."""
        if self._open:
            return []
        self._responses += 1
        self._open = f"response_{self._responses}"
        asked, self._tag = self._tag, ""
        if asked:
            return [ResponseStarted(self._open, asked)]
        self._turn = self._answered = max(self._turn, self._answered + 1)
        return [ResponseStarted(self._open, "", self._turn)]

    def _calls(self, calls: list[dict[str, Any]]) -> list[LiveEvent]:
        more = bool(self._asked) and not self._open  # it has calls waiting and asks for another
        opening = [] if more else self._begin()
        response = self._calling if more else self._open
        self._asked.update(each["id"] for each in calls)
        self._open, self._calling = "", response
        ready = [
            CallReady(response, each["id"], each["name"], dumps(each["args"], separators=(",", ":"))) for each in calls
        ]
        return [*opening, *ready, *([] if more else [ResponseEnded(response)])]

    # -- the provider's end -------------------------------------------------------------------------------

    def accept(self, message: Message) -> list[Command]:
        (case,) = message
        body = message[case]
        match case:
            case "setup":
                declared = [each for tool in body["tools"] for each in tool["functionDeclarations"]]
                return [Configure(body["systemInstruction"]["parts"][0]["text"], tuple(map(_read, declared)), True)]
            case "toolResponse":
                answers = body["functionResponses"]
                quiet = any(each.get("scheduling") == "SILENT" for each in answers)
                return [Results(tuple(map(_result, answers)), quiet)]
            case "clientContent":
                return [Note(body["turns"][0]["parts"][0]["text"])]
        raise ValueError(f"there is no client message {case}")

    def spell(self, event: LiveEvent) -> list[Message]:
        match event:
            case SpeechStarted(interrupts=True):
                return [{"serverContent": {"interrupted": True}}]
            case Transcript(_, text):
                return [{"serverContent": {"inputTranscription": {"text": text, "finished": True}}}]
            case ResponseStarted():
                self._held = []
            case AudioDelta(_, _, speech, text):
                parts = [{"inlineData": {"mimeType": "audio/pcm;rate=16000", "data": speech}}]
                return [{"serverContent": {"modelTurn": {"parts": parts}, "outputTranscription": {"text": text}}}]
            case CallReady(_, call, name, arguments):
                self._held.append({"id": call, "name": name, "args": loads(arguments)})
            case CallsCancelled(calls):
                return [{"toolCallCancellation": {"ids": list(calls)}}]
            case ResponseEnded(_, "completed"):
                if self._held:
                    return [{"toolCall": {"functionCalls": self._held}}]
                return [{"serverContent": {"turnComplete": True}}]
            case Refused(code, text):
                return [{"error": {"status": code, "message": text}}]
        return []

    # -- both ---------------------------------------------------------------------------------------------

    def about(self, message: Message) -> About:
        (case,) = message
        body = message[case]
        if case == "serverContent":
            (part, *_) = body
            samples = body[part]["parts"][0]["inlineData"]["data"].length if part == "modelTurn" else None
            return About(f"serverContent.{part}", samples=samples)
        if case == "toolCall":
            return About(case, calls=[each["id"] for each in body["functionCalls"]])
        if case == "toolResponse":
            return About(case, calls=[each["id"] for each in body["functionResponses"]])
        if case == "toolCallCancellation":
            return About(case, calls=body["ids"])
        return About(case)

    def of_turns(self, message: Message) -> bool:
        """Its transcriptions come in no order with the rest."""
        return "inputTranscription" in message.get("serverContent", {})


def _declaration(tool: Advert) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}


def _read(declared: dict[str, Any]) -> Advert:
    """A declaration as the provider takes it; it refuses the whole set-up for one that it does not."""
    schema = declared.get("parametersJsonSchema")
    if schema is None:
        schema = declared.get("parameters", {})
        unknown = _beyond_subset(schema)
        if unknown:
            raise ValueError(
                f'the set-up is refused: unknown name "{unknown}" at function {declared["name"]}: parameters'
            )
    return Advert(declared["name"], declared["description"], schema)


def _beyond_subset(schema: dict[str, Any]) -> str:
    """The first keyword that ``parameters`` does not take, or an empty text."""
    for key, value in schema.items():
        if key not in _SUBSET:
            return str(key)
        inner = (
            value.values() if key == "properties" else [value] if key == "items" else value if key == "anyOf" else ()
        )
        for each in inner:
            found = _beyond_subset(each)
            if found:
                return found
    return ""


def _answer(result: CallResult, quiet: bool) -> dict[str, Any]:
    answer = {
        "id": result.call,
        "name": result.name,
        "response": {"error" if result.is_error else "output": result.content},
    }
    return {**answer, "scheduling": "SILENT"} if quiet else answer


def _result(answer: dict[str, Any]) -> CallResult:
    ((key, content),) = answer["response"].items()
    return CallResult(answer["id"], answer["name"], content, key == "error")
