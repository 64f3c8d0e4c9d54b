"""One form for what went wrong, whoever failed."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.reports import (
    BLOCK_REASONS,
    Report,
    ReportKind,
    blocked_prompt,
    failed,
    provider_response,
    report_of,
    retryable_status,
)
from bargein.sim.kernel.cancel import Cause


def test_statuses_that_may_pass() -> None:
    wanted = [408, 425, 429, *range(500, 600)]
    assert [status for status in range(100, 1000) if retryable_status(status)] == wanted
    assert retryable_status(None) is False


@pytest.mark.parametrize(
    ("body", "own", "code"),
    [
        ({"error": {"code": "c", "status": "s", "type": "t"}}, "own", "own"),
        ({"error": {"code": "c", "status": "s", "type": "t"}}, None, "c"),
        ({"error": {"code": 429, "status": "s", "type": "t"}}, None, "s"),
        ('{"error": {"type": "t"}}', None, "t"),
        ({"error": "text"}, None, None),
        ("no json", None, None),
        (None, None, None),
    ],
)
def test_a_code_comes_from_the_transport_or_the_body(body: Any, own: str | None, code: str | None) -> None:
    assert provider_response(429, body, code=own).code == code


def test_an_error_reply_keeps_its_status_and_body() -> None:
    found = provider_response(429, {"x": 1})
    assert found == Report(ReportKind.PROVIDER_RESPONSE, "the provider answered 429", 429, True, None, False, {"x": 1})
    assert found.to_dict()["kind"] == "provider_response"


@pytest.mark.parametrize("reason", ["SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT"])
def test_a_blocked_prompt_is_a_refusal(reason: str) -> None:
    found = blocked_prompt(reason)
    assert reason in BLOCK_REASONS
    assert (found.refusal, found.retryable, found.code, found.http_status) == (True, False, reason, None)


@pytest.mark.parametrize(
    ("outcome", "kind", "message"),
    [
        (failed(ReportKind.DENIED, "no"), "denied", "no"),
        (Outcome(Status.FAILED, "broken"), "other", "broken"),
        (Outcome(Status.CRASHED, "KeyError"), "internal", "KeyError"),
        (Outcome(Status.CANCELLED, Cause.BARGE_IN), "cancelled", "barge_in"),
    ],
)
def test_any_failed_outcome_reads_as_a_report(outcome: Outcome, kind: str, message: str) -> None:
    found = report_of(outcome)
    assert (str(found.kind), found.message) == (kind, message)
