"""Recording goes to the loopback interface only, whatever proxy the environment names."""

from __future__ import annotations

import pytest

pytest.importorskip("httpx", reason="recording needs httpx, the extra 'live'")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
