"""Writing a file so that a reader sees all of it or none: a temporary name in the same folder, fsync, rename."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["TEMPORARY", "replacing"]

TEMPORARY = ".tmp"
"""How the name of a file that is being written ends; its name also begins with a dot."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` when the block ends, and disappears when it fails.

    Parameters
    ----------
    path : Path
        An existing file is replaced; until then its old contents stay.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "x.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     [child.name for child in Path(folder).iterdir()]
    ['x.txt']
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":
        _flush(path.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
