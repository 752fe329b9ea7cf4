"""Files inside zip archives, unpacked within a limit, also those packed with zstd, which Python cannot do itself."""

from __future__ import annotations

import importlib
import zipfile
import zlib
from pathlib import Path
from typing import Protocol, cast

from mnemokit.errors import CorruptLog
from mnemokit.turns.fields import BadRecord

MAX_MEMBER_BYTES = 512 * 1024 * 1024
"""A file that unpacks to more is refused, so that an archive cannot fill the memory."""

SURELY_FINE_BYTES = 32 * 1024 * 1024
MAX_RATIO = 300
"""A larger file that unpacks to more than so many times its size is no log but a bomb."""

ZSTD = 93
"""The number of zstd among the methods of zip."""

_LOCAL_HEADER_BYTES = 30


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open an archive for reading.

    Raises:
        CorruptLog: If it is broken or cannot be read.
    """
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise CorruptLog(f"{path}: cannot be read ({error.strerror}); nothing was read") from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeDecodeError) as error:
        raise CorruptLog(f"{path}: the archive is broken ({error}); nothing was read") from None


def unpack(archive: zipfile.ZipFile, member: str, *, limit: int = MAX_MEMBER_BYTES) -> bytes:
    """The content of one file of an archive.

    Args:
        archive: The archive.
        member: Name of the file.
        limit: Bytes that it may have.

    Raises:
        BadRecord: If it is too large, broken, or packed in an unknown way.
    """
    info = archive.getinfo(member)
    if info.file_size > limit or info.compress_size > limit:
        raise BadRecord(f"it unpacks to more than {limit} bytes")
    if info.file_size > SURELY_FINE_BYTES and info.file_size > MAX_RATIO * info.compress_size:
        raise BadRecord(f"it unpacks to more than {MAX_RATIO} times its size")
    try:
        raw = _unpack_zstd(archive, info, limit) if info.compress_type == ZSTD else _unpack(archive, info, limit)
    except NotImplementedError:
        raise BadRecord("it is packed in a way that this Python does not know") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
        raise BadRecord(f"it cannot be unpacked ({str(error)[:100]})") from None
    if len(raw) > limit:
        raise BadRecord(f"it unpacks to more than {limit} bytes")
    return raw


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    with archive.open(info) as file:
        return file.read(limit + 1)


class _Stream(Protocol):
    def read(self, nbytes: int) -> bytes: ...


class _Arrow(Protocol):
    """The part of pyarrow, which has no types, that is used here."""

    def BufferReader(self, raw: bytes) -> object: ...  # noqa: N802 - pyarrow's name

    def CompressedInputStream(self, stream: object, compression: str) -> _Stream: ...  # noqa: N802 - pyarrow's name


def _unpack_zstd(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    arrow = cast("_Arrow", importlib.import_module("pyarrow"))
    packed = _packed(archive, info)
    raw = arrow.CompressedInputStream(arrow.BufferReader(packed), "zstd").read(limit + 1)
    if len(raw) <= limit and (len(raw) != info.file_size or zlib.crc32(raw) != info.CRC):
        raise BadRecord("it cannot be unpacked (its checksum is wrong)")
    return raw


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a file as they stand in the archive, behind its local header."""
    with Path(str(archive.filename)).open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
        if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(b"PK\x03\x04"):
            raise BadRecord("it cannot be unpacked (its header is broken)")
        file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
        return file.read(info.compress_size)
