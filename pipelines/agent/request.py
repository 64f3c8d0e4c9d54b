"""The request to the model, derived by one pure function from settings, conversation and adverts.

Nothing else builds a request. Tools are listed in name order, so that two requests with the same content have
the same bytes and a provider's prompt cache stays warm. A token budget bounds it: the oldest exchanges are left
out whole, so that no answer is separated from its call (tool contract, "Tools in the production pipeline";
run contract, section 1). Left out: how a provider spells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bargein.pipelines.agent.context import CharsPerToken, TokenEstimator
from bargein.pipelines.agent.messages import Message, Role, system

__all__ = ["Advert", "AgentSettings", "Request", "derive_request"]


@dataclass(frozen=True, slots=True)
class Advert:
    """A tool as the model sees it: name, what it does, JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent brings to each of its requests.

    Attributes:
        system: instructions; no system message where empty.
        model: label of the model, which becomes part of its handler key.
        max_context_tokens: bound on what of the conversation is sent.
        temperature, max_tokens, additional_params: passed on as they are.
    """

    system: str = ""
    model: str = "default"
    max_context_tokens: int = 32_000
    temperature: float | None = None
    max_tokens: int | None = None
    additional_params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, complete."""

    messages: tuple[Message, ...]
    tools: tuple[Advert, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    additional_params: dict[str, Any] = field(default_factory=dict)

    @property
    def last_user_text(self) -> str:
        """What the user said last, or an empty string."""
        for message in reversed(self.messages):
            if message.role is Role.USER:
                return message.text
        return ""


def derive_request(
    agent: AgentSettings,
    conversation: Sequence[Message],
    adverts: Sequence[Advert],
    estimator: TokenEstimator | None = None,
) -> Request:
    """Derive the request for the conversation as it stands.

    Args:
        agent: its settings.
        conversation: valid messages, oldest first.
        adverts: the tools on offer, in any order.
        estimator: what a message costs; bytes over four where none is given.
    """
    sent = _window(conversation, agent.max_context_tokens, estimator or CharsPerToken())
    head = (system(agent.system),) if agent.system else ()
    tools = tuple(sorted(adverts, key=_name)) if len(adverts) > 1 else tuple(adverts)
    return Request((*head, *sent), tools, agent.temperature, agent.max_tokens, agent.additional_params)


def _name(advert: Advert) -> str:
    return advert.name


def _window(conversation: Sequence[Message], budget: int, estimator: TokenEstimator) -> Sequence[Message]:
    """The newest whole exchanges that fit, and always the last user message with what follows the last call.

    Where an older user message is left out, so is what answers it.
    """
    costs = [estimator.tokens(message) for message in conversation]
    total = sum(costs)
    if total <= budget:
        return conversation
    last_user = max((at for at, message in enumerate(conversation) if message.role is Role.USER), default=-1)
    kept = [True] * len(conversation)
    for group in _exchanges(conversation):
        if total <= budget or group[-1] == len(conversation) - 1:
            break
        for at in group:
            if at != last_user:
                kept[at] = False
                total -= costs[at]
    for at in range(last_user):  # what is left begins with the user: providers refuse an answer to nothing
        if kept[at] and conversation[at].role is Role.USER:
            break
        kept[at] = kept[at] and conversation[at].role is Role.SYSTEM
    return [message for message, keep in zip(conversation, kept, strict=True) if keep]


def _exchanges(conversation: Sequence[Message]) -> list[list[int]]:
    """Positions grouped so that a call and its answers stay together, oldest group first."""
    groups: list[list[int]] = []
    for at, message in enumerate(conversation):
        if message.role is Role.TOOL and groups:
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups
