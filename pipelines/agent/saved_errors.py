"""Why saved runs are refused: a class for each cause, with the entity, key or digest concerned in its sentence.

Everything is refused before anything of the destination is touched (run contract, section 13). The error that lies
beneath, where there is one, is the ``__cause__``. Left out: finding the causes (``run_checkpoint``, ``restored_graph``,
``run_restore``).
"""

from __future__ import annotations

__all__ = [
    "BadBinary",
    "BadContent",
    "BadHold",
    "BadLink",
    "BadParent",
    "BadValue",
    "CheckpointError",
    "DescriptorMismatch",
    "DuplicateHandler",
    "ExtraneousHandler",
    "IdTaken",
    "KeyMismatch",
    "MissingBinary",
    "MissingContract",
    "MissingHandler",
    "NotACheckpoint",
    "NotSaved",
    "OtherFormat",
    "PendingVerdict",
    "RunTaken",
    "UnfinishedStream",
    "UnknownField",
    "UnknownHostState",
    "UnknownKind",
]


class CheckpointError(ValueError):
    """Runs that cannot be saved or loaded; the argument is a sentence."""


class NotSaved(CheckpointError):
    """A value of a run has no saved form."""


# -- the document ---------------------------------------------------------------------------------------------


class NotACheckpoint(CheckpointError):
    """It is no document of saved runs, was cut off, or does not fit its check."""


class OtherFormat(CheckpointError):
    """It has a format that is not read here."""


class UnknownKind(CheckpointError):
    """An entity is of a kind that does not exist."""


class UnknownField(CheckpointError):
    """An entity has something that does not belong to its kind."""


class UnknownHostState(CheckpointError):
    """State of the host's own is in it, and nobody registered its name here."""


class BadValue(CheckpointError):
    """A value is missing, or is none that may stand in its place."""


class BadParent(CheckpointError):
    """An entity hangs on nothing, on a later one, or on one of another kind."""


class BadLink(CheckpointError):
    """A link leads to nothing, to another kind, or to another run."""


class BadContent(CheckpointError):
    """A message or a part cannot be read."""


class BadHold(CheckpointError):
    """A call is held back by its batch, and is none that a batch could hold."""


class BadBinary(CheckpointError):
    """A payload does not fit its digest, or is more than the destination may keep."""


class MissingBinary(CheckpointError):
    """A medium points to a payload that is not there."""


# -- what cannot go on ----------------------------------------------------------------------------------------


class UnfinishedStream(CheckpointError):
    """An effect was in the middle of its stream; there is no cursor to go on from."""


class PendingVerdict(CheckpointError):
    """An effect was answered, and a layer was still over its verdict; asking for it again would do it twice."""


class MissingContract(CheckpointError):
    """An effect is unfinished, and who serves it was not known when it was saved."""


class IdTaken(CheckpointError):
    """An effect that has to go out again has the id of another one."""


class RunTaken(CheckpointError):
    """The destination has a run of the same number."""


# -- handlers -------------------------------------------------------------------------------------------------


class KeyMismatch(CheckpointError):
    """A binding and its descriptor name different keys."""


class DuplicateHandler(CheckpointError):
    """A key was given two handlers."""


class ExtraneousHandler(CheckpointError):
    """A handler was given for a key that nothing saved needs."""


class MissingHandler(CheckpointError):
    """Nobody serves a key that is needed."""


class DescriptorMismatch(CheckpointError):
    """A handler is not the one that was saved, as far as that may not differ."""
