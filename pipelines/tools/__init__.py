"""Tool calling: declarations, the engine that decides whether a call runs, and what is said while one does."""
