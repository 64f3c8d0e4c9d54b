"""Every sentence and protocol string that the agent says to a model or to a caller, in one place.

Some are pinned word for word by the contracts, since models and tests rely on them; the others are ours, and
changing one is a change that users see. Left out: what scenarios and user tools say.
"""

from __future__ import annotations

__all__ = [
    "ALREADY_DONE",
    "ALREADY_REPORTED",
    "AUGMENTATION_SEPARATOR",
    "CONFIRMATION_REQUIRED",
    "CONFIRM_EXPIRED",
    "CONFIRM_NOT_REPLIED",
    "CONFIRM_PENDING_DESCRIPTION",
    "CONFIRM_PENDING_TOOL",
    "CONFIRM_STALE",
    "CONFIRM_UNKNOWN",
    "DEFAULT_FALLBACK_TEXT",
    "DEFAULT_FILLER_TEXT",
    "INVALID_PEER",
    "INVALID_TOOL_CALL",
    "IN_FLIGHT_DUPLICATE",
    "LATE_NOTE",
    "LINK_BROKE",
    "LINK_DOWN",
    "LINK_FULL",
    "LINK_OUTCOME_UNKNOWN",
    "LINK_QUEUE_FULL",
    "MISSING_FIELD_REPROMPT",
    "NO_ANSWER",
    "ORPHAN_IN_FLIGHT",
    "OUTPUT_TOOL",
    "OUTPUT_TOOL_AUGMENTATION",
    "OUTPUT_TOOL_DESCRIPTION",
    "PROMPTED_AUGMENTATION",
    "RESULT_LIMIT_MARKER",
    "TEXT_REPROMPT",
    "TOOL_PANICKED",
    "TRUNCATION_MARKER",
    "UNKNOWN_TOOL_NAME",
    "WRONG_FAMILY",
]

# -- to the caller --------------------------------------------------------------------------------------------

DEFAULT_FILLER_TEXT = "One moment, please."
DEFAULT_FALLBACK_TEXT = "I'm sorry, something went wrong. Please try again."

# -- to the model: calls ----------------------------------------------------------------------------------------

UNKNOWN_TOOL_NAME = "unknown_tool"
"""Stands in the context for a call that came without a name."""
INVALID_TOOL_CALL = "invalid tool call"
"""The one error kind with spaces; kept as the contract prints it."""
TOOL_PANICKED = "the tool panicked"
TRUNCATION_MARKER = "...[truncated]"

TIMED_OUT = "no result within {timeout}"
TIMED_OUT_RUNNING = (
    "no result within {timeout}; the call keeps running, its result will follow as a note, do not repeat the call"
)
INTERRUPTED = "the user interrupted before the result arrived"
INTERRUPTED_RUNNING = (
    "the user interrupted; the call keeps running, its result will follow as a note, do not repeat the call"
)
NOT_STARTED = "the user interrupted before the call was started; it did not run"
TIMED_OUT_NOT_STARTED = "the call was not approved within {timeout}; it did not run"
OUTCOME_UNKNOWN = "the call ended without a result; the outcome is unknown, do not repeat the call"
UNKNOWN_TOOL_DETAIL = "there is no tool of this name"
ARGUMENTS_TOO_LARGE = "the arguments take more than {limit} bytes"
INVALID_ARGUMENTS = "the arguments do not match the tool's schema"
TOO_MANY_CALLS = "a response may ask for {limit} calls; this one was not run"
BUDGET_EXHAUSTED = "too many invalid calls in this turn; nothing more is run"
STALE_TURN = "a newer turn has begun; this call was not run"
RESULT_TOO_LARGE = "the result takes more than {limit} bytes"
STORE_FULL = "too many calls are still running; this one was not run"
IN_FLIGHT_DUPLICATE = "this call is already running; do not repeat it"
ALREADY_DONE = (
    "an identical call already ran earlier in this turn and succeeded; its result is above; "
    "do not repeat this call, tell the caller what happened"
)
ALREADY_REPORTED = "an identical call was made before; its result is in the note above; do not repeat"
ORPHAN_IN_FLIGHT = "an identical call is still running; its result follows as a note; do not repeat"

LATE_NOTE = "Result of an earlier call that had not finished in time: {tool} (call {call}): {content}"
"""A system note with the result of a side effect that missed its own slot."""

# -- to the model: tools of a remote agent ------------------------------------------------------------------------

LINK_OUTCOME_UNKNOWN = "the outcome is unknown"
LINK_DOWN = "the link to the tool is down; the call was not sent"
LINK_BROKE = "the link to the tool broke before the result arrived"
LINK_QUEUE_FULL = "too many messages wait for the link to the tool; the call was not sent"
LINK_FULL = "{limit} calls already wait on the link to the tool; this one was not sent"

# -- to the model: confirmation -----------------------------------------------------------------------------------

CONFIRM_PENDING_TOOL = "confirm_pending"
CONFIRM_PENDING_DESCRIPTION = (
    "Carry out an action that is waiting for the user's confirmation. Use it only after the user has clearly "
    "agreed in a reply of their own."
)
CONFIRMATION_REQUIRED = (
    "Not done yet: this action needs the user's confirmation. Tell the user exactly what you are about to do and "
    "ask them to confirm. Only if the user clearly agrees in their NEXT reply, call confirm_pending with this "
    "call_id. If they decline, change the request or say anything else, do not call it. Never confirm on your own."
)
CONFIRM_NOT_REPLIED = "the user has not replied since you asked"
CONFIRM_UNKNOWN = "no action is waiting under this call_id; it is unknown, was confirmed before, or was cleared"
CONFIRM_EXPIRED = "the request has expired; ask the user again"
CONFIRM_STALE = "the request belongs to a later turn than this confirmation"

# -- to the model: agent runs ---------------------------------------------------------------------------------------

OUTPUT_TOOL = "final_result"
"""The tool through which a run's structured answer comes; numbered where the name is taken."""
OUTPUT_TOOL_DESCRIPTION = (
    "Call this tool exactly once with your final answer when you are done. Its arguments are the structured result "
    "and must satisfy the output schema."
)
OUTPUT_TOOL_AUGMENTATION = (
    "When you have gathered enough information to answer, call the `{name}` tool exactly once with your final "
    "answer. Its arguments are the structured result and must satisfy the required schema. Do not return the final "
    "answer as plain text."
)
PROMPTED_AUGMENTATION = (
    "Respond with ONLY a single JSON object that conforms to this JSON Schema. Do not include any prose, "
    "explanation, or markdown code fences."
)
AUGMENTATION_SEPARATOR = "\n\n"
TEXT_REPROMPT = (
    "Provide your final answer by calling the `{name}` tool with the structured result as its arguments, "
    "not as plain text."
)
MISSING_FIELD_REPROMPT = (
    "The `{name}` arguments were missing required field(s): {fields}. Call `{name}` again with every required field."
)
INVALID_PEER = "Tool not executed because another tool call in the same assistant turn was invalid."
WRONG_FAMILY = "the tool handler answered with a {family} outcome"
RESULT_LIMIT_MARKER = "\n[\u2026 {omitted} bytes omitted \u2026]\n"
"""Stands where the middle of a long result was cut out of a request."""
NO_ANSWER = {
    "length": "the model stopped at its length limit before it gave an answer",
    "content_filter": "the provider's content filter stopped the model before it gave an answer",
}
"""What is said of an answer that was cut off before it began, by why it stopped."""
