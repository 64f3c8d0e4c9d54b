"""Where a provider is and how it is asked: base URL and key from the environment, path and headers by its wire.

The recorder makes one `Endpoint` and the fetcher posts to it. The URL and the key live in this object only; its text
shows neither, and ``secrets`` names what may be in no file and no message. Left out: sending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from bargein.models.providers.catalogue import WIRES

__all__ = ["PLACES", "Endpoint", "EndpointError", "Place", "endpoint", "is_plain_address"]


class EndpointError(ValueError):
    """A provider cannot be asked from here; the argument is a sentence."""


@dataclass(frozen=True, slots=True)
class Place:
    """One provider.

    Attributes:
        prefix: of its variables: ``<prefix>_API_KEY`` and ``<prefix>_BASE_URL``.
        base_url: where it is unless the second says otherwise.
        path: after the base; ``{model}`` stands for the model.
        key_header: the header with the key; ``Authorization`` takes it as a bearer token.
        headers: that it wants besides.
        needs_key: a server of one's own has none.
    """

    prefix: str
    base_url: str
    path: str = "/chat/completions"
    key_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)
    needs_key: bool = True

    @property
    def key_variable(self) -> str:
        """The environment variable that holds its key."""
        return f"{self.prefix}_API_KEY"


PLACES: Mapping[str, Place] = {
    "anthropic": Place(
        "ANTHROPIC", "https://api.anthropic.com", "/v1/messages", "x-api-key", {"anthropic-version": "2023-06-01"}
    ),
    "gemini": Place(
        "GEMINI",
        "https://generativelanguage.googleapis.com",
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        "x-goog-api-key",
    ),
    "openai_responses": Place("OPENAI", "https://api.openai.com/v1", "/responses"),
    "xai_responses": Place("XAI", "https://api.x.ai/v1", "/responses"),
    "openai": Place("OPENAI", "https://api.openai.com/v1"),
    "ollama": Place("OLLAMA", "http://localhost:11434/v1", needs_key=False),
    "groq": Place("GROQ", "https://api.groq.com/openai/v1"),
    "mistral": Place("MISTRAL", "https://api.mistral.ai/v1"),
    "deepseek": Place("DEEPSEEK", "https://api.deepseek.com/v1"),
    "openrouter": Place("OPENROUTER", "https://openrouter.ai/api/v1"),
    "xai": Place("XAI", "https://api.x.ai/v1"),
    "llamacpp": Place("LLAMACPP", "http://localhost:8080/v1", needs_key=False),
}
"""By the wire that it speaks; every wire of the catalogue has one."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One provider and model, ready to be asked.

    Attributes:
        wire: its name in the catalogue.
        url, headers: of every request; ``secrets``: what of them is nobody's business.
        proxy: to go through; what the environment says where it is ``None``.
        verify, ca_file: whether its certificate is checked, and against which ones if not the usual.
    """

    wire: str
    model: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    proxy: str | None = field(default=None, repr=False)
    verify: bool = True
    ca_file: str | None = field(default=None, repr=False)


def endpoint(
    wire: str,
    model: str,
    environ: Mapping[str, str],
    *,
    base_url: str | None = None,
    key_variable: str | None = None,
    proxy: str | None = None,
    verify: bool = True,
    ca_file: str | None = None,
) -> Endpoint:
    """Where the environment says that a provider is, unless the caller does.

    Args:
        wire: one of the catalogue's.
        model: the provider's name of the model.
        base_url: where it is, whatever the environment says.
        key_variable: the variable that has its key, if not the usual one.
        proxy, verify, ca_file: as the endpoint has them.

    Raises:
        EndpointError: the wire is not known, its key is not set, or its base URL or key cannot be used.
    """
    if wire not in PLACES:
        raise EndpointError(f"unknown provider {wire!r}; accepted is {', '.join(WIRES)}")
    place = PLACES[wire]
    named = key_variable or place.key_variable
    key = environ.get(named, "").strip()
    if not key and (place.needs_key or key_variable is not None):
        raise EndpointError(f"{named} is not set; accepted is the provider's key in the environment")
    if not key.isascii() or not key.isprintable():
        raise EndpointError(f"{named} holds characters that no header can; accepted is the key alone")
    variable = f"{place.prefix}_BASE_URL"
    base_url = (base_url or environ.get(variable, "")).strip().rstrip("/") or place.base_url
    parts = _parts(base_url)
    if parts is None:
        raise EndpointError(f"{variable} is no address; accepted is http:// or https:// with a host")
    headers = dict(place.headers)
    if key:
        headers[place.key_header] = f"Bearer {key}" if place.key_header == "Authorization" else key
    own = (base_url,) if base_url != place.base_url else ()
    secrets = tuple(each for each in (key, *own, *parts, proxy) if each)
    url = base_url + place.path.format(model=quote(model, safe=""))
    return Endpoint(wire, model, url, headers, secrets, proxy, verify, ca_file)


def is_plain_address(url: str) -> bool:
    """Whether it is a web address with nothing in it that may be a secret: no user, no password, no query."""
    return _parts(url) == () and not any(mark in url for mark in "?#@")


def _parts(url: str) -> tuple[str, ...] | None:
    """The user and the password of a URL, often none; ``None`` where it is no URL."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    if not usable or not url.isprintable() or " " in url:
        return None
    return tuple(each for each in (parts.username, parts.password) if each)
