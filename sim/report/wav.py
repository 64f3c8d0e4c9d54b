"""The call as a recording: a stereo WAV with the caller on channel 0 and what was heard of the agent on channel 1.

Left out: how the samples come about (``sim.lab`` places them on the frame grid).
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bargein.sim.kernel.frames import SAMPLE_RATE_HZ
from bargein.sim.report.atomic import write_whole

__all__ = ["write_wav"]


def write_wav(path: str | os.PathLike[str], *, caller: npt.NDArray[np.int16], agent: npt.NDArray[np.int16]) -> Path:
    """Write both sides as 16-bit PCM at 16 kHz; the shorter one is followed by silence.

    Args:
        caller: samples of shape ``(n,)``, int16.
        agent: samples of shape ``(m,)``, int16.

    Raises:
        TypeError: samples that are not one channel of int16.
        OSError: the file cannot be written; nothing is left of it.
    """
    import soundfile

    for name, side in (("caller", caller), ("agent", agent)):
        if side.dtype != np.int16 or side.ndim != 1:
            raise TypeError(f"{name} has {side.dtype} samples of shape {side.shape}; accepted is one channel of int16")
    both = np.zeros((max(len(caller), len(agent)), 2), dtype=np.int16)
    both[: len(caller), 0] = caller
    both[: len(agent), 1] = agent
    buffer = BytesIO()
    soundfile.write(buffer, both, SAMPLE_RATE_HZ, format="WAV", subtype="PCM_16")
    return write_whole(path, buffer.getvalue())
