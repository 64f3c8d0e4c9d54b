"""The request of an agent run, made by one pure function and nowhere else.

Every field has one source and one order (run contract, section 1): who answers is decided by the key it is sent to,
so ``model`` is always null; whether the answer streams stands beside the request. Left out: what a voice session
sends, which is made by `derive_request` and bounded by tokens (``request``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bargein.pipelines.agent.edits import RequestPatch, over
from bargein.pipelines.agent.messages import Message, Role
from bargein.pipelines.agent.output_modes import augmentation
from bargein.pipelines.agent.parts import RunMessage, TextPart
from bargein.pipelines.agent.projection import as_adverts, as_messages
from bargein.pipelines.agent.request import Advert
from bargein.pipelines.agent.run_settings import (
    Agent,
    Document,
    Grant,
    OutputMode,
    OutputSpec,
    OutputToolConfig,
    Settings,
    effective,
    overlaid_options,
    overlaid_provider_options,
)
from bargein.pipelines.wordings import AUGMENTATION_SEPARATOR, OUTPUT_TOOL_DESCRIPTION

__all__ = ["Completion", "CompletionRequest", "fold_request"]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One request, complete."""

    chat_history: tuple[RunMessage, ...]
    documents: tuple[Document, ...]
    tools: tuple[Grant, ...]
    temperature: float | None
    max_tokens: int | None
    tool_choice: Any
    additional_params: Any
    output_schema: Any
    options: dict[str, Any]
    provider_options: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The request as plain data; options only where there are any."""
        data: dict[str, Any] = {
            "model": None,
            "chat_history": [message.to_dict() for message in self.chat_history],
            "documents": [document.to_dict() for document in self.documents],
            "tools": [tool.to_dict() for tool in self.tools],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "tool_choice": self.tool_choice,
            "additional_params": self.additional_params,
            "output_schema": self.output_schema,
        }
        if self.options:
            data["options"] = self.options
        if self.provider_options:
            data["provider_options"] = self.provider_options
        return data


@dataclass(frozen=True, slots=True)
class Completion:
    """What goes over the bus: the request, and whether its answer is to stream.

    It also reads as the request of a voice session does, so that the same models serve both.
    """

    request: CompletionRequest
    stream: bool

    @property
    def messages(self) -> tuple[Message, ...]:
        """The chat history as messages of a voice session."""
        return as_messages(self.request.chat_history)

    @property
    def tools(self) -> tuple[Advert, ...]:
        """The tools on offer."""
        return as_adverts(self.request.tools)

    @property
    def temperature(self) -> float | None:
        """As in the request."""
        return self.request.temperature

    @property
    def max_tokens(self) -> int | None:
        """As in the request."""
        return self.request.max_tokens

    @property
    def additional_params(self) -> Any:
        """As in the request; an empty mapping where it has none."""
        return {} if self.request.additional_params is None else self.request.additional_params

    @property
    def last_user_text(self) -> str:
        """What the user said last, or an empty string."""
        return next((each.text for each in reversed(self.messages) if each.role is Role.USER), "")

    def to_dict(self) -> dict[str, Any]:
        """As a record holds it."""
        return {"request": self.request.to_dict(), "stream": self.stream}


def fold_request(
    agent: Agent,
    run: Settings,
    messages: Sequence[RunMessage],
    adverts: Sequence[Grant],
    attachments: Sequence[Document],
    mode: OutputMode,
    output_tool: str,
    patch: RequestPatch,
) -> CompletionRequest:
    """Derive the request of one round.

    Args:
        messages: what is sent of the conversation, oldest first, already edited and cut.
        adverts: the tools on offer, in the order of their grants, already narrowed.
        attachments: the round's documents.
        mode: as resolved, so never ``Auto``.
        output_tool: its name, where the mode is ``Tool``.
        patch: the round's own changes.
    """
    output = effective(run, agent, "output", OutputSpec())
    config = effective(run, agent, "output_tool", OutputToolConfig())
    preamble = effective(run, agent, "preamble", "") if patch.preamble is None else patch.preamble
    head = [each for each in (preamble, augmentation(mode, output.schema, output_tool, config)) if each]
    system = (RunMessage(Role.SYSTEM, (TextPart(AUGMENTATION_SEPARATOR.join(head)),)),) if head else ()
    tools = tuple(adverts)
    if mode is OutputMode.TOOL:
        description = OUTPUT_TOOL_DESCRIPTION if config.description is None else config.description
        tools += (Grant(output_tool, description, output.schema, ""),)
    return CompletionRequest(
        (*system, *(messages if patch.history is None else patch.history)),
        (*attachments, *patch.extra_context),
        tools,
        effective(run, agent, "temperature") if patch.temperature is None else patch.temperature,
        effective(run, agent, "max_tokens") if patch.max_tokens is None else patch.max_tokens,
        effective(run, agent, "tool_choice") if patch.tool_choice is None else patch.tool_choice,
        over(effective(run, agent, "additional_params"), patch.additional_params),
        output.schema if mode is OutputMode.NATIVE else None,
        overlaid_options(run, agent),
        overlaid_provider_options(run, agent),
    )
