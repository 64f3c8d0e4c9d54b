"""Live delivery: fair, bounded collection, and observers that all see the same batches at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from bargein.models.llm_stream import Schedule  # noqa: F401
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.reports import Report, ReportKind, failed
from bargein.sim.effects.sources import Pause, PushHandler, SourceHandler
from bargein.sim.effects.streams import Batch, LiveStreams
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.errors import EventStorm, VoidRun
