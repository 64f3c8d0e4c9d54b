"""Live providers: servers that hear, think and speak, each behind the wire of one vendor."""
