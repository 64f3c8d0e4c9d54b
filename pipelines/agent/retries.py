"""Asking a provider again after an error that may pass, and waiting before that on the virtual clock.

A lost round leaves no message and costs no turn; every attempt is an effect of its own (run contract, section 5).
Left out: what a provider's error looks like (``sim.effects.reports``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.run_settings import DEFAULT_PROVIDER_RETRIES, Backoff, effective
from bargein.pipelines.agent.run_state import BACKOFF_OWNER, PendingEffect, Phase, Run, Turn
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.clock import Order

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["arm_release", "hold_retry", "provider_failed"]


def provider_failed(runs: AgentRuns, run: Run, turn: Turn, report: Report) -> None:
    """A completion came to nothing: it is asked again while that may help, or the run fails with this report."""
    turn.read = True
    if report.kind is ReportKind.CANCELLED:
        runs.end(run, Failed(Failure.CANCELLED, report))
        return
    budget = int(effective(run.settings, run.agent, "provider_retries", DEFAULT_PROVIDER_RETRIES))
    if not report.retryable or run.provider_retried >= budget:
        runs.end(run, Failed(Failure.PROVIDER, report))
        return
    run.provider_retried += 1
    run.retrying = True
    run.phase = Phase.ASSEMBLING
    runs.tell("agent.provider_retry", run, run.provider_retried, budget, report.message)
    runs.wake()


def hold_retry(runs: AgentRuns, run: Run, turn: Turn) -> None:
    """Hold the request of a retry for as long as its backoff says."""
    backoff: Backoff | None = effective(run.settings, run.agent, "backoff")
    request = turn.request
    if not turn.attempt or backoff is None or request is None:
        return
    request.hold(BACKOFF_OWNER)
    request.release_at_us = runs.clock.now + backoff.delay_us(turn.attempt)
    arm_release(runs, request)


def arm_release(runs: AgentRuns, request: PendingEffect) -> None:
    """Have a held request go when its backoff is over."""
    assert request.release_at_us is not None
    runs.clock.call_in(request.release_at_us - runs.clock.now, Order.TIMER, request.release, BACKOFF_OWNER)
