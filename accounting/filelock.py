"""An advisory lock on an open file, shared or exclusive, on every system.

On POSIX ``flock`` belongs to the opening of the file, so that threads and forked children that open it anew
exclude each other, and it ends with the process however that dies. Elsewhere one byte far beyond the content
is locked with ``msvcrt``, which knows exclusive locks only. A network file system must support locks.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["flush_to_disk", "locked"]

FAR = 2**31 - 16  # byte that stands for the whole file where only ranges can be locked


@contextmanager
def locked(descriptor: int, *, exclusive: bool, wait: bool = True) -> Iterator[None]:
    """Hold a lock on an open file for the duration of a ``with`` block.

    Parameters
    ----------
    descriptor : int
        An open file, obtained for this lock alone.
    exclusive : bool
        Whether to keep out readers as well as writers.
    wait : bool
        Whether to wait until the lock is free.

    Raises
    ------
    BlockingIOError
        If it is not free and `wait` is False.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file, locked(file.fileno(), exclusive=True):
    ...     file.write(b"alone")
    5
    """
    _take(descriptor, exclusive, wait)
    try:
        yield
    finally:
        _release(descriptor)


def flush_to_disk(descriptor: int) -> None:
    """Return when what was written has reached the disk itself.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     flush_to_disk(file.fileno())
    """
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int, exclusive: bool, wait: bool) -> None:
        while True:
            os.lseek(descriptor, FAR, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                return
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EDEADLK):
                    raise
                if not wait:
                    raise BlockingIOError(error.errno, "locked") from None
                time.sleep(0.01)

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(descriptor: int, exclusive: bool, wait: bool) -> None:
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
