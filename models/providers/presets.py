"""Where the providers that speak Chat Completions differ, one preset each.

`ChatCompletions` takes one. Each entry is a fact about a provider's API, with what happens otherwise. Left out: base
URLs and keys, which belong to whoever sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bargein.models.providers.wire_ids import nine_characters, plain

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True, slots=True)
class Preset:
    """One compatible provider.

    Attributes:
        provider: its name in errors and on the timeline.
        usage_option: usage comes in the stream only when it is asked for.
        content_always: an assistant message needs ``content`` also where it holds only calls.
        reasoning: members of an answer that have to come back with it, the fullest first; one of them is sent.
        make_id: ids for calls whose own cannot serve.
        defaults: members of every request, unless the agent's own parameters say otherwise.
    """

    provider: str
    usage_option: bool = False
    content_always: bool = False
    reasoning: tuple[str, ...] = ()
    make_id: Callable[[str], str] = plain
    defaults: Mapping[str, Any] = field(default_factory=dict)


PRESETS: dict[str, Preset] = {
    "openai": Preset("OpenAI", usage_option=True),
    # Thinking models think by default there, and the native `think` member is ignored on this path.
    "ollama": Preset("Ollama", usage_option=True, defaults={"reasoning_effort": "none"}),
    "groq": Preset("Groq", usage_option=True, reasoning=("reasoning",)),
    # Refuses ids that are not nine letters and digits.
    "mistral": Preset("Mistral", content_always=True, make_id=nine_characters),
    # Refuses a round with calls in thinking mode when its reasoning does not come back.
    "deepseek": Preset("DeepSeek", usage_option=True, content_always=True, reasoning=("reasoning_content",)),
    # Signed reasoning is in the details, which have to come back in their order and unchanged.
    "openrouter": Preset("OpenRouter", reasoning=("reasoning_details", "reasoning")),
    "xai": Preset("xAI", usage_option=True),
    "llamacpp": Preset("llama.cpp", usage_option=True, reasoning=("reasoning_content",)),
}
