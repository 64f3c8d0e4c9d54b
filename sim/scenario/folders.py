"""Paths that a scenario names: they stay inside its folder. Left out: what the files hold."""

from __future__ import annotations

from pathlib import Path as FilePath
from pathlib import PurePosixPath, PureWindowsPath

__all__ = ["inside"]


def inside(folder: FilePath, name: str) -> FilePath | None:
    """The path that ``name`` means in ``folder``; ``None`` where it would lead out of it, links followed."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if "\0" in name or posix.is_absolute() or windows.drive or windows.root or ".." in windows.parts:
        return None
    path = folder / name
    return path if path.resolve().is_relative_to(folder.resolve()) else None
