"""The only door to the world: every completion and every tool call is one recorded effect on the bus."""
