"""Recorded traffic: files of exchanges, each a request and the streamed answer to it.

``BARGEIN_WIRE_CASSETTES`` names the folder; its first level names the provider. Left out: what the bodies mean
(``reading``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any

from bargein.models.providers.adapter import Adapter
from bargein.models.providers.catalogue import adapter
from bargein.models.providers.presets import PRESETS
from bargein.models.providers.responses import OpenAIResponses

__all__ = ["FOLDER", "Cassette", "Exchange", "files", "folder", "load"]

FOLDER = "BARGEIN_WIRE_CASSETTES"
_DEFAULT = Path(__file__).parents[2] / ".." / "shared" / "wire_cassettes"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and the bytes that answered it; none where the answer was an error or no stream."""

    request: dict[str, Any]
    answer: bytes
    streamed: bool


@dataclass(frozen=True, slots=True)
class Cassette:
    """One file.

    Attributes:
        wire: as the catalogue names it.
    """

    name: str
    wire: str
    exchanges: tuple[Exchange, ...]

    def adapter(self, request: dict[str, Any]) -> Adapter:
        """The adapter for a request of the file, which may go on from an answer that the provider keeps."""
        model = request.get("model", "")
        if "previous_response_id" in request:
            return OpenAIResponses(model, "OpenAI" if self.wire == "openai_responses" else "xAI", chained=True)
        return adapter(self.wire, model)


def folder() -> Path:
    """Where the recordings are, or would be."""
    return Path(os.environ.get(FOLDER) or _DEFAULT).resolve()


def files() -> list[Path]:
    """The recordings, in the order of their names; none where the folder is not there."""
    root = folder()
    return sorted(each for each in root.rglob("*") if each.suffix in (".yaml", ".yml")) if root.is_dir() else []


def load(path: Path) -> Cassette:
    """Read one file."""
    import yaml

    with path.open(encoding="utf-8") as stream:
        documents = [each for each in yaml.load_all(stream, _loader()) if each]
    name = path.relative_to(folder()).as_posix()
    wire = _wire(name.partition("/")[0], documents[0]["when"]["path"])
    return Cassette(name, wire, tuple(_exchange(each) for each in documents))


def _exchange(document: dict[str, Any]) -> Exchange:
    request, answer = loads(document["when"]["body"] or "{}"), document["then"]
    types = [each["value"] for each in answer.get("header") or () if each["name"].lower() == "content-type"]
    streamed = answer.get("status", 200) < 300 and any("event-stream" in each for each in types)
    return Exchange(request, (answer.get("body") or "").encode() if streamed else b"", streamed)


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _wire(provider: str, path: str) -> str:
    if path.endswith("/messages"):
        return "anthropic"
    if "generatecontent" in path.lower():
        return "gemini"
    if path.endswith("/responses"):
        return "xai_responses" if provider == "xai" else "openai_responses"
    return provider if provider in PRESETS else "openai"
