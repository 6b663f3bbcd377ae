"""An append-only file of JSON lines that several processes share and that survives crashes.

Each line ends with a checksum, SHA-256 of the previous line's checksum and of the line itself: a chain, in which
a change, a swap or a deletion anywhere but at the end breaks every later link. (Somebody who can write the file
can also rebuild the chain, or cut its end: whoever noted the last checksum elsewhere will see it.)

A write happens under an exclusive lock: read what others added, verify, append ONE line, flush it to the disk.
Only then is the caller told that the line is there. A line without its checksum is therefore something nobody
was told about: the next writer takes it off and keeps its text in a note. A line whose checksum is right counts
even when its newline is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from privfit.accounting.filelock import flush_to_disk, locked

__all__ = ["Journal", "now"]

MARK = b',"checksum":"'
TAIL = len(MARK) + 64 + 2  # the mark, 64 hexadecimal digits, a quote and a brace
KEPT = 4000  # characters of an incomplete line that are kept
BINARY = getattr(os, "O_BINARY", 0)


def now() -> str:
    """Universal time to the second, as text.

    Examples
    --------
    >>> len(now())
    25
    """
    return datetime.now(UTC).isoformat(timespec="seconds")


class Journal:
    """Records in a file; `kind` names what the file is for and is checked on opening.

    Parameters
    ----------
    path : path-like
        A regular file, or a place for one.
    kind : str
        First value of the first line.

    Raises
    ------
    ValueError, TypeError
        If the path is empty, no path, or belongs to a folder or a device.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "notes.jsonl")
    >>> journal = Journal(path, "notes")
    >>> journal.create({"version": 1})["version"]
    1
    >>> with journal.writing() as news:
    ...     journal.append({"text": "hello"})
    >>> [record["text"] for record in Journal(path, "notes").read()[1:]]
    ['hello']
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self.path = _file_path(path)
        self.kind = kind
        self.checksums: list[str] = []
        self._size = 0  # bytes verified so far, without the newline of the last line
        self._digest = hashlib.sha256()  # of these bytes
        self._descriptor: int | None = None
        self._expected = ""  # a checksum that must be in the file

    @property
    def checksum(self) -> str:
        """Checksum of the last line read or written; empty before the first."""
        return self.checksums[-1] if self.checksums else ""

    def create(self, header: dict[str, Any]) -> dict[str, Any]:
        """Write the first line if the file is new, and return the first line that is there."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | BINARY, 0o666)
        try:
            with locked(descriptor, exclusive=True):
                content = _read_all(descriptor)
                if content and self._never_begun(content):
                    os.ftruncate(descriptor, 0)
                    content = b""
                if not content:
                    _write_all(descriptor, 0, _line({"kind": self.kind, **header}, "") + b"\n")
                    _flush_folder(os.path.dirname(self.path))
                first = Journal(self.path, self.kind)
                header = first._take_in(_read_all(descriptor))[0]
                self._expected = first.checksum  # another file in its place will be noticed
                return header
        finally:
            os.close(descriptor)

    def read(self) -> list[dict[str, Any]]:
        """Verify the file and return the records added since the last call; the file is not touched."""
        descriptor = os.open(self.path, os.O_RDONLY | BINARY)
        try:
            with locked(descriptor, exclusive=False):
                return self._take_in(_read_all(descriptor))
        finally:
            os.close(descriptor)

    @contextmanager
    def writing(self) -> Iterator[list[dict[str, Any]]]:
        """Keep all others out, and give the records added since the last call; then `append`."""
        descriptor = os.open(self.path, os.O_RDWR | BINARY)
        try:
            with locked(descriptor, exclusive=True):
                self._descriptor = descriptor
                yield self._take_in(_read_all(descriptor))
        finally:
            self._descriptor = None
            os.close(descriptor)

    def append(self, record: dict[str, Any]) -> None:
        """Add a record, inside `writing`; it is on the disk when this returns."""
        if self._descriptor is None:
            raise RuntimeError("append needs the lock; call it inside `with journal.writing():`.")
        content = _read_all(self._descriptor)
        end, torn = content[self._size :][:1], content[self._size :][1:]
        if not end:
            _write_all(self._descriptor, self._size, b"\n")
        if torn:
            os.ftruncate(self._descriptor, self._size + 1)
            text = torn.decode("utf-8", "backslashreplace")[:KEPT]
            self._append(self._descriptor, {"kind": "set aside", "time": now(), "text": text})
        self._append(self._descriptor, record)

    def _append(self, descriptor: int, record: dict[str, Any]) -> None:
        line = _line(record, self.checksum)
        _write_all(descriptor, self._size + 1, line + b"\n")
        self._advance(b"\n" + line)

    def renewed(self) -> Journal:
        """A journal that reads the file from its start again, and insists on what this one has seen of it."""
        fresh = Journal(self.path, self.kind)
        verified = not self._expected or self._expected in self.checksums
        fresh._expected = self.checksum if verified else self._expected
        return fresh

    def _never_begun(self, content: bytes) -> bool:
        """Whether somebody died while writing the first line, so that nothing has been recorded."""
        start = _line({"kind": self.kind}, "")[: len(self.kind) + 10]
        ours = content.startswith(start) or start.startswith(content)
        return ours and b"\n" not in content and _verified(content, "") is None

    # --- verification ---------------------------------------------------------------------------------

    def _take_in(self, content: bytes) -> list[dict[str, Any]]:
        """Verify the content and return its new records."""
        known = content[: self._size]
        if len(known) < self._size or hashlib.sha256(known).digest() != self._digest.digest():
            raise self._changed()
        rest = content[self._size :]
        if self._size and rest[:1] not in (b"", b"\n"):
            raise self._broken()
        pieces = rest[1:].split(b"\n") if self._size else rest.split(b"\n")
        records = []
        for i, piece in enumerate(pieces):
            record = _verified(piece, self.checksum)
            last = i == len(pieces) - 1
            if record is None and last:
                break  # the end of the file, or a line that was never finished
            if record is None:
                raise self._broken()
            records.append(record)
            if not self.checksums and record.get("kind") != self.kind:
                raise ValueError(f"{self.path} is not a {self.kind} but a {record.get('kind')!r}; check the path.")
            self._advance((b"\n" if self._size else b"") + piece)
        if not self.checksums:
            raise self._broken()
        if self._expected and self._expected not in self.checksums:
            raise self._changed()
        self._expected = ""
        return records

    def _advance(self, text: bytes) -> None:
        self._size += len(text)
        self._digest.update(text)
        self.checksums.append(text[-66:-2].decode("ascii"))

    def _changed(self) -> ValueError:
        return ValueError(
            f"{self.path} was cut or changed after it was read; restore it from a copy before spending more."
        )

    def _broken(self) -> ValueError:
        if not self.checksums:
            return ValueError(f"{self.path} is not a {self.kind}, or its first line is damaged; check the path.")
        line = len(self.checksums) + 1
        return ValueError(
            f"line {line} of {self.path} does not follow from the line before it: the file was edited or damaged; "
            "restore it from a copy, for what it says cannot be trusted."
        )


def _file_path(path: Any) -> str:
    """The absolute path of a file that can be read again: no folder, no device, no pipe."""
    advice = "; name a file, such as 'study.jsonl'."
    try:
        text = os.fsdecode(path)
    except TypeError as error:
        raise TypeError(f"path must be text or path-like, got {type(path).__name__}{advice}") from error
    if not text or "\0" in text:
        raise ValueError(f"path must not be empty or hold a null character, got {text!r}{advice}")
    if os.path.exists(text) and not os.path.isfile(text):
        raise ValueError(f"path must be that of a regular file, got the folder or device {text!r}{advice}")
    return os.path.abspath(text)


def _line(record: dict[str, Any], previous: str) -> bytes:
    body = json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii")
    return body[:-1] + MARK + _link(previous, body).encode("ascii") + b'"}'


def _link(previous: str, body: bytes) -> str:
    return hashlib.sha256(previous.encode("ascii") + body).hexdigest()


def _verified(line: bytes, previous: str) -> dict[str, Any] | None:
    """The record of a line whose checksum follows from the previous one, or None."""
    body, tail = line[:-TAIL] + b"}", line[-TAIL:]
    if tail != MARK + _link(previous, body).encode("ascii") + b'"}':
        return None
    try:
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    blocks = []
    while block := os.read(descriptor, 1 << 20):
        blocks.append(block)
    return b"".join(blocks)


def _write_all(descriptor: int, position: int, data: bytes) -> None:
    """Write and flush; if the disk is full, what was written is taken off again."""
    os.lseek(descriptor, position, os.SEEK_SET)
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, position)
        raise
    flush_to_disk(descriptor)


def _flush_folder(folder: str) -> None:
    """Make a new file's name survive a power failure."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
