"""Opening a log file, packed with gzip or not: it is told by its first bytes, not by its name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from mnemokit.errors import CorruptLog

MAX_DOCUMENT_BYTES = 2 * 1024**3
"""A packed document that unpacks to more than this is not read: documents are held whole."""

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_log(path: Path) -> Generator[BinaryIO]:
    """Open a file for reading its bytes, unpacked.

    Raises:
        CorruptLog: If it cannot be opened, or, while it is read, if it cannot be unpacked to its end.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise CorruptLog(f"{path}: cannot be read ({error.strerror}); nothing was read") from None
    with file:
        if file.peek(2)[:2] != _GZIP_MAGIC:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast("BinaryIO", unpacked)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CorruptLog(f"{path}: it cannot be unpacked to its end ({error}); mend or unpack the file") from None


def read_document(path: Path) -> bytes:
    """All bytes of a file that is one document, unpacked.

    Raises:
        CorruptLog: If it cannot be read or unpacked, or unpacks to more than `MAX_DOCUMENT_BYTES`.
    """
    try:
        with open_log(path) as file:
            is_packed = isinstance(file, gzip.GzipFile)
            raw = file.read(MAX_DOCUMENT_BYTES + 1 if is_packed else -1)
    except OSError as error:
        raise CorruptLog(f"{path}: cannot be read ({error.strerror}); nothing was read") from None
    if is_packed and len(raw) > MAX_DOCUMENT_BYTES:
        raise CorruptLog(f"{path}: it unpacks to more than {MAX_DOCUMENT_BYTES} bytes; nothing was read")
    return raw
