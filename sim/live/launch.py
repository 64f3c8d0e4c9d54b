"""Launch settings: how a host reaches a live provider, kept as data of its own, apart from every session.

A host writes them down once, in a small YAML file or in Python, and applies them again whenever it builds a client
(run contract, section 12.1): ``record(..., fetcher=launch.fetcher(os.environ))``. No scenario, record, log or cassette
holds any of it. A key never stands in them, only the name of the variable that has it; the key is looked up anew for
each request, so one that was renewed in mid-session is used, and no session notices. Left out: redirects, which are
not followed, and anything that a client keeps between requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bargein.models.providers.catalogue import WIRES
from bargein.sim.effects.document_sorts import LAUNCH, sort_of, sort_of_data
from bargein.sim.effects.documents import DocumentError, Fields, read_bytes
from bargein.sim.live.endpoints import PLACES, Endpoint, EndpointError, endpoint, is_plain_address
from bargein.sim.live.fetch import Fetcher
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.texts import parse_yaml

__all__ = ["MAX_BYTES", "MAX_TEXT", "Launch", "LaunchError", "load_launch"]

MAX_BYTES = 64 * 1024
MAX_TEXT = 2_048
"""Characters of one setting."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_KEYS = ("provider", "model", "endpoint", "auth", "proxy", "tls")


class LaunchError(EndpointError):
    """Launch settings that cannot be used; the argument is a sentence, without anything that may be a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How one provider is reached.

    Attributes:
        provider: its wire, by its name in the catalogue.
        model: the provider's name of the model.
        endpoint: its base URL. One that is given stays given, also where it is the usual one, and goes before that of
            the environment; ``None`` leaves it to the environment, then to the usual one.
        auth: name of the environment variable that has the key; the provider's usual one unless given.
        proxy: address of the proxy to go through; what the environment says unless given.
        verify: whether its certificate is checked; it is unless given.
        ca_file: file with the certificates to check it against, in place of the usual ones.

    Raises:
        LaunchError: one of them is not of its sort, or holds what may be a secret.
    """

    provider: str
    model: str
    endpoint: str | None = None
    auth: str | None = None
    proxy: str | None = None
    verify: bool | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if self.provider not in PLACES:
            raise LaunchError(f"provider: it is none that is known; accepted is {', '.join(WIRES)}")
        for name in ("model", "endpoint", "auth", "proxy", "ca_file"):
            value = getattr(self, name)
            if value is not None and not (type(value) is str and 0 < len(value) <= MAX_TEXT and value.isprintable()):
                raise LaunchError(f"{name}: accepted is a text of up to {MAX_TEXT} characters on one line")
        if self.model is None:
            raise LaunchError("model is missing; accepted is the provider's name of the model")
        for name in ("endpoint", "proxy"):
            value = getattr(self, name)
            if value is not None and not is_plain_address(value):
                raise LaunchError(
                    f"{name}: accepted is http:// or https:// with a host, without user, password and query"
                )
        if self.auth is not None and not _VARIABLE.fullmatch(self.auth):
            raise LaunchError("auth: accepted is the name of the environment variable that has the key, not a key")
        if self.verify not in (None, True, False):
            raise LaunchError("tls.verify: accepted is true or false")

    # -- as data ------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The settings as a file has them; what was not given is not there."""
        tls = {"verify": self.verify, "ca_file": self.ca_file}
        data: dict[str, Any] = {
            "provider": self.provider,
            "model": self.model,
            "endpoint": self.endpoint,
            "auth": None if self.auth is None else {"env": self.auth},
            "proxy": self.proxy,
            "tls": {name: value for name, value in tls.items() if value is not None} or None,
        }
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Any, place: str = "launch") -> Launch:
        """The settings again.

        Raises:
            LaunchError: they are none; says the place, what belongs there, and nothing of what was found.
        """
        try:
            given = Fields(_mapping(data, place), place, _KEYS).data
            auth = Fields(_mapping(given.get("auth", {}), f"{place}.auth"), f"{place}.auth", ("env",)).data
            tls = Fields(_mapping(given.get("tls", {}), f"{place}.tls"), f"{place}.tls", ("verify", "ca_file")).data
        except DocumentError as error:
            raise LaunchError(str(error)) from None
        for name in ("provider", "model"):
            if name not in given:
                raise LaunchError(f"{place}: {name} is missing; accepted are {', '.join(_KEYS)}")
        plain = {name: given[name] for name in ("provider", "model", "endpoint", "proxy") if name in given}
        more: dict[str, Any] = {"auth": auth.get("env"), "verify": tls.get("verify"), "ca_file": tls.get("ca_file")}
        try:
            return cls(**plain, **more)
        except LaunchError as error:
            raise LaunchError(f"{place}.{error}") from None

    # -- applied ------------------------------------------------------------------------------------------

    def connect(self, environ: Mapping[str, str]) -> Endpoint:
        """The provider as it is reached right now, its key read from ``environ``.

        Raises:
            EndpointError: the key is not set or cannot be used, or there is no such file of certificates.
        """
        if self.ca_file is not None and not Path(self.ca_file).is_file():
            raise LaunchError("tls.ca_file: there is no such file; accepted is a file with certificates")
        return endpoint(
            self.provider,
            self.model,
            environ,
            base_url=self.endpoint,
            key_variable=self.auth,
            proxy=self.proxy,
            verify=self.verify is not False,
            ca_file=self.ca_file,
        )

    def fetcher(self, environ: Mapping[str, str], **more: Any) -> Fetcher:
        """What asks the provider, one request after the other; the key is looked up anew for each.

        Args:
            more: as `Fetcher` takes it.
        """
        return Fetcher(self.connect(environ), refresh=lambda: self.connect(environ), **more)


def load_launch(path: str | Path) -> Launch:
    """Launch settings from a YAML file.

    Raises:
        LaunchError: there is no such file, or it holds something else.
    """
    name, accepted = str(path), f"accepted is {LAUNCH} in YAML"
    raw: bytes | None = None
    try:
        raw = read_bytes(path, LAUNCH, MAX_BYTES)
        data, _ = parse_yaml(raw.decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        raise LaunchError(f"{name}: found bytes that are no UTF-8; {accepted}") from None
    except (DocumentError, ScenarioError) as error:
        other = None if raw is None else sort_of(raw)
        raise LaunchError(str(error) if other in (None, LAUNCH) else f"{name}: it is {other}; {accepted}") from None
    other = sort_of_data(data)
    if other not in (None, LAUNCH):
        raise LaunchError(f"{name}: it is {other}; {accepted}")
    return Launch.from_dict(data, name)


def _mapping(data: Any, place: str) -> dict[str, Any]:
    if type(data) is not dict:
        raise LaunchError(f"{place}: accepted is a mapping")
    return data
