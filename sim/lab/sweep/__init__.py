"""Sweeps: many sessions of one scenario, with values of it varied and the same callers for every variant."""
