"""Steering that is declared beforehand: how single requests differ, which model has them, which calls are denied.

The model port asks for each request what of it holds there; the runner hands its denials to the tool engine. All of it
is about what is sent: the conversation keeps every word (run contract, sections 8.1, 9.3 and 9.6). Rules hold in their
order, the later over the earlier. Left out: hooks, which decide as a run goes on (``agent.hooks``), and choices of a
model that stay until the next one (``agent.routes``): a route here is for the requests that it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bargein.pipelines.agent.edits import RequestPatch, over
from bargein.pipelines.agent.messages import Message, Role, ToolResult
from bargein.pipelines.agent.request import AgentSettings
from bargein.pipelines.agent.result_limit import ResultLimit, cut_text

__all__ = ["Steer", "Steering", "SteeringRule", "Where"]


@dataclass(frozen=True, slots=True)
class Where:
    """The requests that a rule is about; all of them where nothing is given.

    Attributes:
        epoch: number of the turn.
        round: number of the request in its turn, from 1.
    """

    epoch: int | None = None
    round: int | None = None

    def holds(self, epoch: int, round: int) -> bool:
        """Whether this request is one of them."""
        return self.epoch in (None, epoch) and self.round in (None, round)


@dataclass(frozen=True, slots=True)
class SteeringRule:
    """One rule; what it does not name it leaves alone.

    Attributes:
        patch: the request differs so; its tools are the only ones on offer, of those that are.
        limit: of every tool's result in the request; a late note is no result, and is sent whole.
        deny: name of a tool whose calls are not served when the response asks for them.
        reason: what such a call is answered with, word for word.
        route: label of the model that the request goes to; with none of the kind it goes to the agent's own.

    Raises:
        ValueError: the patch has what a voice session's request has not, or a denial has no reason.
    """

    where: Where = Where()
    patch: RequestPatch | None = None
    limit: ResultLimit | None = None
    deny: str | None = None
    reason: str = ""
    route: str | None = None

    def __post_init__(self) -> None:
        patch = self.patch
        if patch is not None and (patch.tool_choice is not None or patch.extra_context or patch.history is not None):
            raise ValueError(
                "a voice session's request has no tool choice, documents or other history; "
                "accepted are preamble, temperature, max_tokens, active_tools and additional_params"
            )
        if self.deny is not None and not self.reason:
            raise ValueError(f"{self.deny} is denied without a reason; accepted is a text, which the model reads")


@dataclass(frozen=True, slots=True)
class Steer:
    """What holds for one request and for the calls of its response; ``model`` is the label of who has it."""

    patch: RequestPatch | None = None
    limit: ResultLimit | None = None
    denied: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None

    @property
    def tools(self) -> frozenset[str] | None:
        """The only tools on offer; ``None`` leaves the offer alone."""
        tools = None if self.patch is None else self.patch.active_tools
        return None if tools is None else frozenset(tools)

    def agent(self, agent: AgentSettings) -> AgentSettings:
        """The settings that the request is derived from."""
        patch = self.patch
        if patch is None:
            return agent
        return replace(
            agent,
            system=agent.system if patch.preamble is None else patch.preamble,
            temperature=agent.temperature if patch.temperature is None else patch.temperature,
            max_tokens=agent.max_tokens if patch.max_tokens is None else patch.max_tokens,
            additional_params=over(agent.additional_params, patch.additional_params),
        )

    def messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation that the request is derived from, with results within the limit."""
        limit = self.limit
        return messages if limit is None else [_cut(message, limit) for message in messages]


def _cut(message: Message, limit: ResultLimit) -> Message:
    if message.role is not Role.TOOL:
        return message
    parts = [
        replace(part, content=cut_text(part.content, limit)) if type(part) is ToolResult else part
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))


_NOTHING = Steer()


@dataclass(frozen=True, slots=True)
class Steering:
    """The rules of a session, in their order; none steers nothing."""

    rules: tuple[SteeringRule, ...] = ()

    def at(self, epoch: int, round: int) -> Steer:
        """What holds for the request ``round`` (from 1) of the turn ``epoch`` (run contract, sections 9.2 and 9.3).

        Of two limits, routes, reasons or values of a field the later rule's holds; tools have to be named by all
        patches that name any, and mappings merge.
        """
        if not self.rules:
            return _NOTHING
        patch: RequestPatch | None = None
        limit: ResultLimit | None = None
        model: str | None = None
        denied: dict[str, str] = {}
        for rule in self.rules:
            if not rule.where.holds(epoch, round):
                continue
            if rule.patch is not None:
                patch = rule.patch if patch is None else patch.merge(rule.patch)
            limit = rule.limit or limit
            model = rule.route or model
            if rule.deny is not None:
                denied[rule.deny] = rule.reason
        return Steer(patch, limit, denied, model)
