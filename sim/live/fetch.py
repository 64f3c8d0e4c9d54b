"""One request to a real provider: sent at once, its answer taken down piece by piece with the time of each.

This is the only file that opens a connection, and it needs httpx (the extra ``live``). A client lives for one request,
and with it the credentials it uses; renewing them is the host's, and shows nowhere. A failure after the answer has
begun is part of what happened; one before is an error, told without address, key or anything that a library would
add. Left out: retries, so that what is recorded is what was asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bargein.models.cassettes import MAX_BYTES, Exchange
from bargein.models.providers.adapter import compact_json
from bargein.models.redaction import Redactor
from bargein.sim.live.endpoints import Endpoint, EndpointError

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["FetchError", "Fetcher"]

LONGEST_US = 300_000_000
"""An answer that still comes after this is broken off."""

_SILENCE_S = 120.0


class FetchError(Exception):
    """A provider gave no answer at all; the argument is a sentence."""


class Fetcher:
    """Asks one endpoint, one request at a time.

    Args:
        refresh: gives the endpoint as it is now, and is asked before every request; its key may have been renewed.
        spacing_us: from one request to the next, at least; some free plans want it.
        now_ns, sleep: the clock, and waiting on it (in seconds).

    Attributes:
        asked: requests so far.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        refresh: Callable[[], Endpoint] | None = None,
        spacing_us: int = 0,
        now_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._refresh = refresh
        self._spacing_us = spacing_us
        self._now_ns = now_ns
        self._sleep = sleep
        self._secrets: tuple[str, ...] = ()
        self._last_ns: int | None = None
        self.asked = 0
        self._use(endpoint)

    def _use(self, endpoint: Endpoint) -> None:
        """Ask this endpoint from now on; what was secret stays so."""
        self._endpoint = endpoint
        self._secrets = tuple(dict.fromkeys((*self._secrets, *endpoint.secrets)))
        self._clean = Redactor(secrets=self._secrets)
        # A library's error may name hosts; their names alone are too common words to take out of answers.
        hosts = [urlsplit(url).hostname or "" for url in (endpoint.url, endpoint.proxy or "")]
        self._clean_error = Redactor(secrets=(*self._secrets, *hosts))

    def fetch(self, body: dict[str, Any]) -> Exchange:
        """Send a request and wait for the whole answer.

        Returns:
            The exchange, the endpoint's secrets taken out of it.

        Raises:
            FetchError: no answer began.
        """
        self._wait()
        self.asked += 1
        if self._refresh is not None:
            try:
                self._use(self._refresh())
            except EndpointError as error:
                raise FetchError(f"request {self.asked} to {self._endpoint.wire} was not sent: {error}") from None
        with _quiet_libraries():
            exchange = self._exchange(body)
        return self._clean.exchange(exchange)

    def _wait(self) -> None:
        """Keep the distance to the request before."""
        now_ns = self._now_ns()
        if self._last_ns is not None:
            missing_ns = self._last_ns + self._spacing_us * 1_000 - now_ns
            if missing_ns > 0:
                self._sleep(missing_ns / 1e9)
                now_ns = self._now_ns()
        self._last_ns = now_ns

    def _exchange(self, body: dict[str, Any]) -> Exchange:
        import httpx

        pieces: list[tuple[int, bytes]] = []
        size = 0
        status: int | None = None
        answered_us = 0
        broken = False
        sent_ns = self._now_ns()

        def since() -> int:
            return (self._now_ns() - sent_ns) // 1_000

        problem = ""
        try:
            with (
                httpx.Client(
                    timeout=_SILENCE_S, proxy=self._endpoint.proxy, verify=_verification(self._endpoint)
                ) as client,
                client.stream(
                    "POST",
                    self._endpoint.url,
                    content=compact_json(body).encode("utf-8", "backslashreplace"),
                    # A compressed answer would come in other pieces than it was said in.
                    headers={
                        **self._endpoint.headers,
                        "content-type": "application/json",
                        "accept-encoding": "identity",
                    },
                ) as answer,
            ):
                status, answered_us = answer.status_code, since()
                for piece in answer.iter_bytes():
                    pieces.append((since(), piece))
                    size += len(piece)
                    if size > MAX_BYTES or pieces[-1][0] > LONGEST_US:
                        broken = True
                        break
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            broken = True
            problem = self._clean_error.text(f"{type(error).__name__}: {error}")
        end_us = since()
        if status is None:
            # Raised out here, so that the library's error, which knows the request, does not travel along.
            raise FetchError(f"request {self.asked} to {self._endpoint.wire} got no answer ({problem})")
        return Exchange(body, status, answered_us, tuple(pieces), end_us, broken)


def _verification(endpoint: Endpoint) -> SSLContext | bool:
    """How httpx is to check the endpoint's certificate.

    Raises:
        FetchError: the file of certificates has none.
    """
    if not endpoint.verify or endpoint.ca_file is None:
        return endpoint.verify
    import ssl

    try:
        return ssl.create_default_context(cafile=endpoint.ca_file)
    except OSError:
        raise FetchError("tls.ca_file: it holds no certificates; accepted is a file with some, in PEM") from None


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Keep the client's own log lines, which hold the address, out of every log."""
    loggers = [logging.getLogger(name) for name in ("httpx", "httpcore")]  # those below them follow
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
