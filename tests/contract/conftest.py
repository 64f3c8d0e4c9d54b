"""The rig of the engine's own tests, for what the contract asks besides."""

from __future__ import annotations

from tests.pipelines.tools.conftest import kit, rig

__all__ = ["kit", "rig"]
