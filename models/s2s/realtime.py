"""The wire of OpenAI's Realtime API: typed events both ways, items that can be truncated, responses on request.

The client creates a response after its results, and gives it a tag in ``metadata``; the server creates one by itself
when its detector ends a turn, where the session says so. Left out: text modalities, sessions that expire, and audio as
base64 (``wire``).
"""

from __future__ import annotations

from typing import Any

from bargein.models.s2s.wire import About, Message
from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallResult,
    CallsCancelled,
    CancelResponse,
    Command,
    Configure,
    CreateResponse,
    DeleteItem,
    LiveEvent,
    Note,
    Refused,
    ResponseEnded,
    ResponseStarted,
    Results,
    SpeechStarted,
    SpeechStopped,
    Transcript,
    TruncateItem,
)
from bargein.pipelines.agent.request import Advert

__all__ = ["RealtimeWire"]

_OF_TURNS = ("input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped")
_TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
_OUTPUT = "function_call_output"


class RealtimeWire:
    """One session's wire."""

    continues = False
    calls_last = False
    withdraws = False
    truncates = True

    def __init__(self) -> None:
        self._inputs: dict[str, int] = {}
        self._answers = 0  # responses that the provider began by itself: one a turn

    # -- the client's end ---------------------------------------------------------------------------------

    def encode(self, command: Command) -> list[Message]:
        match command:
            case Configure():
                return [{"type": "session.update", "session": _session(command)}]
            case Results():
                return [
                    _item({"type": _OUTPUT, "call_id": each.call, "output": each.content}) for each in command.results
                ]
            case Note():
                content = [{"type": "input_text", "text": command.text}]
                return [_item({"type": "message", "role": "system", "content": content})]
            case CreateResponse():
                return [{"type": "response.create", "response": {"metadata": {"tag": command.tag}}}]
            case CancelResponse():
                return [{"type": "response.cancel", "response_id": command.response}]
            case TruncateItem():
                end = {"content_index": 0, "audio_end_ms": command.audio_end_ms}
                return [{"type": "conversation.item.truncate", "item_id": command.item, **end}]
            case DeleteItem():
                return [{"type": "conversation.item.delete", "item_id": command.item}]

    def decode(self, message: Message) -> list[LiveEvent]:
        match message["type"]:
            case "input_audio_buffer.speech_started":
                return [SpeechStarted(self._turn(message), message["audio_start_ms"] * 1000)]
            case "input_audio_buffer.speech_stopped":
                return [SpeechStopped(self._turn(message), message["audio_end_ms"] * 1000)]
            case "conversation.item.input_audio_transcription.completed":
                return [Transcript(self._turn(message), message["transcript"])]
            case "response.created":
                response = message["response"]
                asked = (response["metadata"] or {}).get("tag", "")
                self._answers += not asked
                return [ResponseStarted(response["id"], asked, 0 if asked else self._answers)]
            case "response.output_audio.delta":
                delta = message["delta"]
                text = "".join(word for word, _ in delta.words)
                return [AudioDelta(message["response_id"], message["item_id"], delta, text)]
            case "response.function_call_arguments.done":
                return [CallReady(message["response_id"], message["call_id"], message["name"], message["arguments"])]
            case "response.done":
                response = message["response"]
                return [ResponseEnded(response["id"], response["status"], _reason(response["status_details"]))]
            case "error":
                return [Refused(message["error"]["code"], message["error"]["message"])]
        return []  # a kind of message that this client has no use for

    def _turn(self, message: Message) -> int:
        """The number of a turn: its item's, in the order in which they were first told."""
        return self._inputs.setdefault(message["item_id"], len(self._inputs) + 1)

    # -- the provider's end -------------------------------------------------------------------------------

    def accept(self, message: Message) -> list[Command]:
        match message["type"]:
            case "session.update":
                session = message["session"]
                tools = [Advert(each["name"], each["description"], each["parameters"]) for each in session["tools"]]
                answers = session["audio"]["input"]["turn_detection"]["create_response"]
                return [Configure(session["instructions"], tuple(tools), answers)]
            case "conversation.item.create":
                item = message["item"]
                if item["type"] == _OUTPUT:
                    return [Results((CallResult(item["call_id"], "", item["output"], _is_error(item["output"])),))]
                return [Note(item["content"][0]["text"])]
            case "response.create":
                return [CreateResponse(message["response"]["metadata"]["tag"])]
            case "response.cancel":
                return [CancelResponse(message["response_id"])]
            case "conversation.item.truncate":
                return [TruncateItem(message["item_id"], message["audio_end_ms"])]
            case "conversation.item.delete":
                return [DeleteItem(message["item_id"])]
        raise ValueError(f"there is no client event {message['type']}")

    def spell(self, event: LiveEvent) -> list[Message]:
        match event:
            case SpeechStarted(turn, at_us):
                return [{"type": _OF_TURNS[0], "item_id": _input(turn), "audio_start_ms": (at_us or 0) // 1000}]
            case SpeechStopped(turn, at_us):
                return [{"type": _OF_TURNS[1], "item_id": _input(turn), "audio_end_ms": (at_us or 0) // 1000}]
            case Transcript(turn, text):
                return [{"type": _TRANSCRIBED, "item_id": _input(turn), "content_index": 0, "transcript": text}]
            case ResponseStarted(response, asked):
                return [
                    _response("response.created", response, "in_progress", metadata={"tag": asked} if asked else None)
                ]
            case AudioDelta(response, item, speech):
                return [
                    {"type": "response.output_audio.delta", "response_id": response, "item_id": item, "delta": speech}
                ]
            case CallReady(response, call, name, arguments):
                done = {"call_id": call, "name": name, "arguments": arguments}
                return [{"type": "response.function_call_arguments.done", "response_id": response, **done}]
            case ResponseEnded(response, status, reason):
                details = {"type": status, "reason": reason} if reason else None
                return [_response("response.done", response, status, status_details=details)]
            case Refused(code, text):
                return [{"type": "error", "error": {"type": "invalid_request_error", "code": code, "message": text}}]
            case CallsCancelled():
                return []

    # -- both ---------------------------------------------------------------------------------------------

    def about(self, message: Message) -> About:
        item = message.get("item", {})
        call = message.get("call_id") or item.get("call_id")
        positions = [message[key] for key in ("audio_start_ms", "audio_end_ms") if key in message]
        delta = message.get("delta")
        response = message.get("response_id") or (message.get("response") or {}).get("id")
        return About(
            message["type"],
            response,
            message.get("item_id"),
            [call] if call else [],
            positions[0] if positions else None,
            None if delta is None else delta.length,
        )

    def of_turns(self, message: Message) -> bool:
        return message["type"] in (*_OF_TURNS, _TRANSCRIBED)


def _session(command: Configure) -> dict[str, Any]:
    answers = command.answers_turns
    tools = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in command.tools
    ]
    detection = {"type": "server_vad", "create_response": answers, "interrupt_response": answers}
    return {
        "type": "realtime",
        "instructions": command.system,
        "tools": tools,
        "audio": {"input": {"turn_detection": detection}},
    }


def _input(turn: int) -> str:
    return f"user_{turn}"


def _item(item: dict[str, Any]) -> Message:
    return {"type": "conversation.item.create", "item": item}


def _response(kind: str, response: str, status: str, **more: Any) -> Message:
    return {"type": kind, "response": {"id": response, "status": status, **more}}


def _reason(details: dict[str, Any] | None) -> str:
    return "" if details is None else str(details["reason"])


def _is_error(output: str) -> bool:
    """A function's output has no field for failure: the model reads it in the text."""
    return output.startswith('{"error":')
