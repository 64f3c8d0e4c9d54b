"""The wires by the names a scenario gives them.

Left out: how each works; its own file says.
"""

from __future__ import annotations

from bargein.models.providers.adapter import Adapter
from bargein.models.providers.anthropic import AnthropicMessages
from bargein.models.providers.chat_completions import ChatCompletions
from bargein.models.providers.gemini import GeminiContent
from bargein.models.providers.presets import PRESETS
from bargein.models.providers.responses import OpenAIResponses

__all__ = ["WIRES", "adapter"]

WIRES = ("anthropic", "gemini", "openai_responses", "xai_responses", *PRESETS)


def adapter(wire: str, model: str) -> Adapter:
    """The adapter of a wire.

    Args:
        wire: one of ``WIRES``.
        model: the provider's name of the model.

    Raises:
        ValueError: there is no such wire.
    """
    match wire:
        case "anthropic":
            return AnthropicMessages(model)
        case "gemini":
            return GeminiContent(model)
        case "openai_responses":
            return OpenAIResponses(model)
        case "xai_responses":
            return OpenAIResponses(model, "xAI")
    if wire not in PRESETS:
        raise ValueError(f"wire {wire!r} is not known; accepted are {', '.join(WIRES)}")
    return ChatCompletions(model, wire)
