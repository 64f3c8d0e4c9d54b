"""The lab: runs sessions, checks what must hold, measures, explores and sweeps."""
