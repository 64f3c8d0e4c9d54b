"""The system under test: a voice agent's pipeline, one stage a file.

It knows the kernel and the effect bus below it and nothing of the world: callers, models and tools are handed
to it through the protocols in ``bargein.pipelines.ports``.
"""
