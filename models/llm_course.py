"""What the scripted models of one call have been asked and have said so far, whichever of them it was.

A `ScriptedModel` keeps one; where an agent's requests go to several models, they share it, since a request's number in
its turn, the last reply and the ids of calls belong to the conversation and not to who answers. Left out: the answers.
"""

from __future__ import annotations

from bargein.models.llm_reading import Reading
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.request import Request

__all__ = ["Course"]


class Course:
    """The course of one call, as far as its models have taken part in it.

    Attributes:
        said: the texts of their replies, whole, oldest first.
        calls: how many calls they have asked for.
    """

    __slots__ = ("_rounds", "calls", "said")

    def __init__(self) -> None:
        self.said: list[str] = []
        self.calls = 0
        self._rounds: dict[str, int] = {}

    def read(self, request: Request, scope: str) -> Reading:
        """The next request of the turn ``scope``, as its model can read it.

        Its number within the turn is counted here; one that was sent ahead of the turn in vain does not count.
        """
        number = 1
        if not request.messages or request.messages[-1].role is not Role.USER:
            number = self._rounds.get(scope, 0) + 1
        self._rounds[scope] = number
        return Reading(request, self.said, int(scope[1:]), number)
