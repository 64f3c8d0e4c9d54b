"""A memory that survives the process: conversations in an SQLite file, or in a database of its own in memory.

A session asks it through ``memory.MemoryHandler``. Every append is one transaction, written through to the disk before
it returns: after a crash a conversation holds whole appends, in order, and nothing of the one that was cut short. The
file carries an application id and the version of its tables; one of another program or of a later version is refused
and left as it is. Left out: several writers that should see one another's half-done work.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from json import loads
from pathlib import Path
from types import TracebackType
from typing import Any

from bargein.models.memory import MAX_MESSAGES, StoreError, check_room, message_text

__all__ = ["APPLICATION_ID", "VERSION", "SqliteStore"]

APPLICATION_ID = 0x62_61_72_67
"""Says in the file's head that it is one of ours."""

VERSION = 1
"""Of the tables."""

_TABLES = """
CREATE TABLE messages (
    conversation TEXT NOT NULL,
    number INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
) WITHOUT ROWID, STRICT
"""

_BUSY_S = 5
"""How long another process may hold the file before an operation fails; no session decides on it."""


class SqliteStore:
    """Conversations in an SQLite database (``memory.Store``).

    Args:
        path: the file, made where there is none; ``:memory:`` keeps nothing beyond this object.
        max_messages: bound on one conversation.
        read_only: the file has to be a memory already, and is left as it is.

    Raises:
        StoreError: the file cannot be opened, or is not a memory of this version.
    """

    def __init__(
        self, path: str | Path = ":memory:", max_messages: int = MAX_MESSAGES, *, read_only: bool = False
    ) -> None:
        self.path = str(path)
        self._max_messages = max_messages
        place = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else self.path
        try:
            self._database = sqlite3.connect(place, timeout=_BUSY_S, isolation_level=None, uri=read_only)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be opened as a memory: {error}") from None
        try:
            self._open(read_only)
        except BaseException:
            self._database.close()
            raise

    def _open(self, read_only: bool) -> None:
        """Look what the file is, before anything is written to it."""
        with self._errors():
            application, version, tables = self._head()
            if application == APPLICATION_ID:
                if version != VERSION:
                    raise StoreError(f"{self.path} has memory format {version}; accepted is {VERSION}")
            elif application or version or tables:
                raise StoreError(f"{self.path} is a database of another program; accepted is a memory or a new file")
            if read_only and application != APPLICATION_ID:
                raise StoreError(f"{self.path} is an empty file; accepted is a memory")
            self._database.execute("PRAGMA synchronous = FULL")
            if application != APPLICATION_ID:
                with self._transaction():
                    if self._head()[0] != APPLICATION_ID:  # another process may have been first
                        self._database.execute(_TABLES)
                        self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                        self._database.execute(f"PRAGMA user_version = {VERSION}")

    def _head(self) -> tuple[int, int, int]:
        one = self._one
        return one("PRAGMA application_id"), one("PRAGMA user_version"), one("SELECT count(*) FROM sqlite_schema")

    def load(self, conversation: str) -> list[Mapping[str, Any]]:
        """See ``memory.Store.load``."""
        query = "SELECT number, message FROM messages WHERE conversation = ? ORDER BY number"
        with self._errors():
            rows = self._database.execute(query, (_key(conversation),)).fetchall()
        messages: list[Mapping[str, Any]] = []
        for number, text in rows:
            try:
                message = loads(text)
            except (ValueError, RecursionError) as error:
                raise StoreError(f"{self.path}: message {number} of {conversation!r} is no JSON: {error}") from None
            if type(message) is not dict:
                raise StoreError(f"{self.path}: message {number} of {conversation!r} is no JSON object")
            messages.append(message)
        return messages

    def append(self, conversation: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """See ``memory.Store.append``."""
        key = _key(conversation)
        texts = [message_text(message) for message in messages]
        with self._errors(), self._transaction():
            first = self._one("SELECT coalesce(max(number) + 1, 0) FROM messages WHERE conversation = ?", key)
            check_room(conversation, first + len(texts), self._max_messages)
            rows = [(key, number, _storable(text)) for number, text in enumerate(texts, start=first)]
            self._database.executemany("INSERT INTO messages VALUES (?, ?, ?)", rows)

    def clear(self, conversation: str) -> None:
        """See ``memory.Store.clear``."""
        with self._errors(), self._transaction():
            self._database.execute("DELETE FROM messages WHERE conversation = ?", (_key(conversation),))

    def copy(self) -> SqliteStore:
        """The same conversations in a database of its own in memory; what happens there leaves this one as it is."""
        copied = SqliteStore(max_messages=self._max_messages)
        with self._errors():
            self._database.backup(copied._database)
        return copied

    def close(self) -> None:
        """Let go of the file; the store is of no use afterwards."""
        self._database.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was never opened
            self._database.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _one(self, query: str, *parameters: str) -> int:
        found: int = self._database.execute(query, parameters).fetchone()[0]
        return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing, alone with the file."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from None


def _key(conversation: str) -> str:
    return _storable(conversation)


def _storable(text: str) -> str:
    """The text itself; SQLite keeps UTF-8, which has no bytes for half a surrogate pair.

    Raises:
        StoreError: it holds half a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise StoreError("half a surrogate pair cannot be kept in an SQLite memory") from None
    return text
