"""Talking to real providers: where they are, one request to one, a whole scenario recorded, and what a run showed."""
