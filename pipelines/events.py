"""The vocabulary of the timeline: every kind of event, and the names of its values in their order.

Stages append with ``timeline.add(kind, epoch, *values)``; invariants, metrics, reports and scenarios read by these
names. Argument values of tool calls appear in none of them (tool contract, item 10): the effect log holds them.
Left out: ``t``, ``seq``, ``kind`` and ``epoch``, which every record has.
"""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS: dict[str, tuple[str, ...]] = {
    # the session
    "session.started": (),
    "session.ended": ("reason",),  # quiet, hang_up, agent_hung_up or time_limit
    # the caller, as they really speak
    "caller.started": ("line", "text", "duration_us", "level"),  # level: audio or decision
    "caller.ended": ("line",),
    "caller.hung_up": (),
    # what the agent makes of it
    "vad.started": ("onset_us",),  # beginning of the first voiced frame
    "vad.stopped": ("speech_end_us",),  # end of the last voiced frame
    "turn.barge_in": ("onset_us", "source"),  # the decision; source: audio, decision or provider
    "turn.ignored": ("onset_us", "reason"),  # speech that could have been one: not_audible, cooldown, too_short, ...
    "turn.ended": ("speech_end_us",),  # the decision that the user has finished
    "stt.final": ("segment", "text"),
    "turn.user": ("text", "segments"),  # the user's message, which opens this epoch; the segments it is made of
    "turn.interrupted": ("cause",),  # this epoch's run and speech are over
    # the run
    "speculation.started": ("text",),
    "speculation.committed": (),
    "speculation.discarded": ("reason",),
    "run.ended": ("ending", "rounds"),  # answered, empty, fallback, failed, cancelled
    "llm.routed": ("round", "model"),  # the request that follows goes to this model and not to the agent's own
    "llm.suspended": ("round", "layer"),  # the request waits for the approval that a layer wants; it was not sent
    "llm.withdrawn": ("round", "cause"),  # it was given up while it waited, and never sent
    "llm.request": ("round", "effect", "messages", "tools"),  # counts
    "llm.request_refused": ("round", "provider", "reason"),  # it was encoded, and the provider would not take it
    "llm.first_token": ("round",),
    "llm.done": ("round", "finish", "calls", "chars"),  # counts
    "llm.withheld": ("round", "layer"),  # it is answered, and a layer takes its time over the verdict
    "llm.failed": ("round", "reason"),
    "llm.refused_delta": ("round", "reason"),
    "llm.request_finished": ("round", "time_to_first_token_us", "duration_us"),
    # the context: enough to rebuild its shape
    "context.pushed": ("message", "role", "source", "text", "calls", "call", "error", "sha"),
    "context.truncated": ("message", "text"),
    "context.removed": ("message",),
    "context.filled": ("message", "text"),  # the words of a user message, which were not known yet
    # what is remembered of earlier calls, and of this one
    "memory.loaded": ("messages",),  # counts
    "memory.appended": ("messages",),
    "memory.failed": ("operation", "reason"),  # load or append
    # tools
    "tools.started": ("round", "calls"),
    "tools.ended": ("round", "results", "notes", "budget_exhausted"),
    "tool.started": ("call", "tool", "side_effect", "effect"),
    "tool.suspended": ("call", "tool", "layer"),  # it waits for the approval that a layer wants; its body has not begun
    "tool.withdrawn": ("call", "tool", "cause"),  # it was given up while it waited, and its body never began
    "tool.withheld": ("call", "tool", "layer"),  # the body has ended, and a layer takes its time over the verdict
    "tool.progress": ("call", "tool", "text"),
    "tool.finished": ("call", "tool", "status"),  # the body came to its own end: ok, failed, crashed
    "tool.dropped": ("call", "tool", "cause"),  # the body was stopped from outside
    "tool.settled": ("call", "tool", "outcome", "duration_us", "retries"),
    "tool.held": ("call", "tool"),
    "tool.late_result": ("call", "tool", "outcome"),
    "tool.committed": ("round", "delivered", "notes"),  # results and notes are in the context (call ids)
    "note.dropped": ("call", "tool"),
    # the confirmation gate
    "confirm.requested": ("call", "tool"),
    "confirm.taken": ("call", "request"),
    "confirm.cleared": ("requests", "reason"),
    # the link to a remote agent; sender: session or agent
    "link.sent": ("message", "sender", "what", "call"),
    "link.received": ("message", "sender", "what", "call"),
    "link.lost": ("message", "sender", "what", "call", "reason"),  # lost, link_down or queue_full
    "link.down": ("for_us",),  # None: it stays down
    "link.up": (),
    "link.refused": ("what", "tool", "reason"),  # part of a message that the session did not accept
    "tools.offered": ("tools",),  # what the model is told of from its next request on
    # fillers and fallback
    "filler.due": ("round", "tool"),
    "filler.spoken": ("round", "tool", "text", "clip"),
    "fallback.spoken": ("text", "reason"),
    # the wire of a speech-to-speech session: every message, by the provider's own name; null where it has none such
    "s2s.sent": ("what", "item", "calls", "at_ms"),  # calls: the provider's ids
    "s2s.received": ("what", "response", "item", "calls", "at_ms", "samples"),
    # speech on its way to the ear
    "clip.cued": ("ordinal", "clip"),
    "response.started": ("ordinal", "source"),  # source: answer, filler or fallback
    "tts.opened": ("utterance", "ordinal", "source", "clip"),
    "tts.waiting": ("ordinal",),  # held back by a pending clip
    "tts.first_byte": ("utterance",),
    "tts.ended": ("utterance", "samples"),  # all of its audio was received
    "tts.dropped": ("utterance", "reason"),
    "clip.queued": ("utterance", "clip"),
    "clip.fallback": ("ordinal", "clip", "reason"),
    "playout.started": ("utterance", "source", "at_sample"),
    "playout.word": ("utterance", "index", "word"),
    "playout.starved": ("utterance", "samples"),  # nothing to play: the next piece is late
    "playout.resumed": ("utterance", "at_sample"),
    "playout.ended": ("utterance", "samples"),
    "playout.cut": ("utterance", "samples", "received"),  # samples heard, of those received
}
