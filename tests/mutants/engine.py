"""Faults of the tool engine."""

from __future__ import annotations
