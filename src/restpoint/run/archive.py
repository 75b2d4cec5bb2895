"""One file of arrays (.npy members of a zip archive, as in .npz) and of words (a JSON member); never pickle.

A file is written beside its name and moved there when it is complete, so that a name always holds a whole file: the new
one, or the one before. Every member is checked by its checksum, and all of them by a digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

import numpy as np

from restpoint.errors import DataError, StorageError, described

# Raise the number when the meaning of what is written changes; files of other numbers are refused.
FORMAT, NUMBER = "restpoint", 1
WORDS, DIGEST = "words.json", "digest"
# What a damaged archive can make its readers raise.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,  # also of JSON, Unicode and NumPy's headers
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    NotImplementedError,
    RuntimeError,  # also of recursion
    OverflowError,
    MemoryError,
)


@dataclass(frozen=True)
class Archive:
    """What a file holds, and who wrote it."""

    path: Path
    written_by: str
    words: Any
    arrays: dict[str, np.ndarray]


def installed() -> str:
    """The version of this package."""
    try:
        return version(FORMAT)
    except PackageNotFoundError:
        return "unknown"


def checked_path(path: Any) -> Path:
    """A file name at the door; links are followed, so that the file behind them is replaced."""
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"path must be the name of a file, got {described(path)}")
    return Path(os.path.realpath(Path(path).expanduser()))


def write(path: Path, kind: str, words: Any, arrays: dict[str, np.ndarray]) -> None:
    """Write a file of some kind."""
    header = {
        "format": FORMAT,
        "number": NUMBER,
        "kind": kind,
        "written by": f"{FORMAT} {installed()}",
        "words": words,
    }
    text = json.dumps(header, allow_nan=False).encode()
    with _replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        digest = _Digest()
        for name, array in arrays.items():
            info = _member(f"{name}.npy")
            with archive.open(info, "w", force_zip64=True) as member:
                digest.begin(info.filename)
                np.lib.format.write_array(digest.through(member), array, allow_pickle=False)
        digest.begin(WORDS)
        digest.add(text)
        archive.writestr(_member(WORDS), text)
        archive.writestr(_member(DIGEST), digest.text)


def _member(name: str) -> zipfile.ZipInfo:
    """Without a time, so that the same content makes the same file."""
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o644 << 16
    return info


def read(path: Any, kind: str) -> Archive:
    """Read a file of this kind whole; anything else is refused by name."""
    path = checked_path(path)
    try:
        with path.open("rb") as file:
            return _read(path, file, kind)
    except StorageError:
        raise
    except FileNotFoundError as error:
        raise StorageError(f"there is no file {str(path)!r}") from error
    except OSError as error:
        raise StorageError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error


def _read(path: Path, file: IO[bytes], kind: str) -> Archive:
    try:
        with zipfile.ZipFile(file) as archive:
            header = json.loads(archive.read(WORDS))
            _check_header(path, header, kind)
            arrays = _checked_arrays(archive)
            return Archive(path, str(header["written by"]), header["words"], arrays)
    except DAMAGE as error:
        raise StorageError(
            f"{str(path)!r} cannot be read as a file of {FORMAT}: it is truncated, damaged or something else "
            f"({type(error).__name__}: {error})"
        ) from error


def _check_header(path: Path, header: Any, kind: str) -> None:
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']!r}")
    if header["number"] != NUMBER:
        raise StorageError(
            f"{str(path)!r} was written by {header['written by']} in format {header['number']}; this is {FORMAT} "
            f"{installed()}, which reads format {NUMBER}: use the version that wrote it"
        )
    if header["kind"] != kind:
        ways = {
            "checkpoint": "go on with resume(path, problem)",
            "result": "read it with load(path)",
        }
        raise StorageError(
            f"{str(path)!r} holds a {header['kind']}, not a {kind}; {ways.get(header['kind'], '')}"
        )


def _checked_arrays(archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    arrays, digest = {}, _Digest()
    *members, last = archive.infolist()
    for info in members:
        with archive.open(info) as member:
            digest.begin(info.filename)
            through = digest.through(member)
            if info.filename != WORDS:
                name = info.filename.removesuffix(".npy")
                arrays[name] = np.lib.format.read_array(through, allow_pickle=False)
            while through.read(1 << 20):  # to the end, where the checksum is compared
                pass
    if last.filename != DIGEST or archive.read(last).decode() != digest.text:
        raise ValueError("it was changed after it was written")
    return arrays


class _Digest:
    """Follows the names and bytes of all members."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def begin(self, name: str) -> None:
        self._hash.update(f"\n{name}\n".encode())

    def add(self, data: bytes) -> None:
        self._hash.update(data)

    def through(self, file: IO[bytes]) -> Any:
        """A file that tells what it reads or writes."""
        return _Followed(self, file)

    @property
    def text(self) -> str:
        return self._hash.hexdigest()


class _Followed:
    def __init__(self, digest: _Digest, file: IO[bytes]) -> None:
        self._digest, self._file = digest, file

    def write(self, data: bytes) -> int:
        self._digest.add(data)
        return self._file.write(data)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._digest.add(data)
        return data


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of ``path`` once it is complete and on the disk."""
    beside = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _settle(path.parent)
    except OSError as error:
        raise StorageError(
            f"{str(path)!r} cannot be written: {error.strerror or error}; what was there before is unchanged"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink()


def _settle(folder: Path) -> None:
    """Let the new name survive a loss of power, where folders can be told to."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
