"""Recording a scenario: its session runs with a real provider for a model, and what was said becomes a cassette.

The virtual clock stands still while a request is with the provider; the answer is then played on it, each piece as
late as it really came. So the recorded run is a run like any other, and playing the cassette gives it again. The
command line and the live tests call `record`. Left out: several sessions at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bargein.models.cassettes import Cassette, Exchange
from bargein.models.llm_played import Answers, FromCassette
from bargein.models.llm_script import ScriptError
from bargein.models.providers.catalogue import adapter
from bargein.models.redaction import Redactor
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import judge
from bargein.sim.live.endpoints import EndpointError, endpoint
from bargein.sim.live.fetch import Fetcher, FetchError
from bargein.sim.live.launch import load_launch
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError

if TYPE_CHECKING:
    from bargein.models.python_tools import Tools
    from bargein.sim.scenario.model import Scenario

__all__ = ["Recorded", "launched", "play", "record"]

_NEEDS_HTTPX = "recording needs httpx; accepted is an installation with it: pip install 'bargein[live]'"


class _Fetched:
    """Answers of a provider, kept as they come (`Answers`)."""

    def __init__(self, fetcher: Fetcher, wire: str, model: str) -> None:
        self._fetcher = fetcher
        self.adapter = adapter(wire, model)
        self.exchanges: list[Exchange] = []

    def exchange(self, body: dict[str, Any], scope: str) -> Exchange:
        try:
            exchange = self._fetcher.fetch(body)
        except FetchError as error:
            raise ScriptError(str(error), "") from None
        self.exchanges.append(exchange)
        return exchange


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a recording.

    Attributes:
        result: the recorded run.
        cassette: what was said in it, redacted.
    """

    result: Result
    cassette: Cassette


def record(
    scenario: Scenario,
    provider: str,
    model: str,
    *,
    environ: Mapping[str, str],
    redact: Sequence[str] = (),
    tools: Tools | None = None,
    seed: int | None = None,
    fetcher: Fetcher | None = None,
) -> Recorded:
    """Run a scenario once with a real provider.

    Args:
        scenario: its own script or cassette is not used.
        provider: the wire, by its name in the catalogue; ``model``: the provider's name of the model.
        environ: where the key and the base URL are (``bargein.sim.live.endpoints``).
        redact: regular expressions of what the cassette must not hold. The run itself is not redacted.
        fetcher: asks in place of a new one, for several recordings in a row.

    Raises:
        ScenarioError: the scenario, the provider or a pattern cannot be used, the provider does not answer, or
            httpx is not installed.
    """
    if find_spec("httpx") is None:
        raise ScenarioError(_NEEDS_HTTPX)
    patterns = Redactor(_checked(redact))
    if scenario.s2s is not None:
        raise ScenarioError(f"{scenario.name} is speech to speech; accepted is a scenario without s2s")
    try:
        fetcher = fetcher or Fetcher(endpoint(provider, model, environ))
    except EndpointError as error:
        raise ScenarioError(str(error)) from None
    answers = _Fetched(fetcher, provider, model)
    result = _run(scenario, answers, tools, seed)
    exchanges = tuple(patterns.exchange(each) for each in answers.exchanges)
    return Recorded(result, Cassette(provider, model, scenario.name, exchanges))


def launched(
    provider: str | None, model: str | None, launch: str | None, environ: Mapping[str, str]
) -> tuple[str, str, Fetcher | None]:
    """Who is to be asked, by name or by a file of launch settings, and what asks where the settings say more.

    Raises:
        ScenarioError: both are given, or neither whole, or the file cannot be used.
    """
    if launch is None:
        if provider is None or model is None:
            raise ScenarioError("--provider and --model go together; accepted are both, or --launch with a file")
        return provider, model, None
    if provider is not None or model is not None:
        raise ScenarioError("--launch names provider and model itself; accepted is one way or the other")
    if find_spec("httpx") is None:
        raise ScenarioError(_NEEDS_HTTPX)
    try:
        settings = load_launch(launch)
        return settings.provider, settings.model, settings.fetcher(environ)
    except EndpointError as error:
        raise ScenarioError(str(error)) from None


def play(cassette: Cassette, scenario: Scenario, *, tools: Tools | None = None, seed: int | None = None) -> Result:
    """Run a scenario with a cassette for a model.

    Raises:
        ScenarioError: a request no longer matches the recording.
    """
    return _run(scenario, FromCassette(cassette), tools, seed)


def _run(scenario: Scenario, answers: Answers, tools: Tools | None, seed: int | None) -> Result:
    plan = Plan(scenario, tools)
    opened = plan.open(seed, answers=answers)
    return judge(plan, opened, opened.session.run, seed, None)


def _checked(patterns: Sequence[str]) -> Sequence[str]:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ScenarioError(
                f"--redact {pattern!r}: {error.msg} at position {error.pos}; accepted is a regular expression"
            ) from None
    return patterns
