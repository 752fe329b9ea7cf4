"""The one family of errors that mnemokit raises.

Every error says what was wrong, where, what was left untouched and what to do next, in one line.
"""

from __future__ import annotations


class MnemokitError(Exception):
    """Base of every error that mnemokit raises on purpose."""


class InvalidInput(MnemokitError, ValueError):
    """An argument or a value cannot be used; nothing was written."""


class NotFound(MnemokitError, LookupError):
    """The id or name is not in this store, or not in this scope; nothing was written."""


class Conflict(MnemokitError):
    """The call contradicts what the store holds, and both sides are named; nothing was written."""


class ConcurrentWrite(Conflict):
    """Another writer kept changing the same rows until the stated number of retries was used up."""


class StoreLocked(MnemokitError):
    """Another process holds the store's file."""


class StoreVersion(MnemokitError):
    """The file is no mnemokit store, or was written by a newer mnemokit; it was left as it is."""


class ReadOnly(MnemokitError):
    """A write was asked of a store that was opened read-only, or through a read-only call."""


class QueryError(MnemokitError):
    """DuckDB refused a query given to ``mem.sql``."""


class CorruptLog(MnemokitError):
    """A log file is empty, cut off, or not of the format it was read as; the store is untouched."""


class UnknownFormat(CorruptLog):
    """No reader recognises the file; the message lists what was tried."""


class Forgotten(MnemokitError):
    """The person was forgotten; the call was refused until they are readmitted."""


class MissingExtra(MnemokitError, ImportError):
    """An optional part was asked for whose packages are not installed."""


class NotEnoughData(MnemokitError):
    """The question cannot be answered from so few rows, and a number would mislead."""
