"""The ground floor: a virtual clock and what runs on it. Imports nothing else of this project.

Deliberately absent: audio decoding, plots, threads, network and logging set-up. They live in ``models`` and
``sim.report``, above the effect bus.
"""
