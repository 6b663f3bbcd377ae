"""Objects that must exist once, because a second copy would not know what the first has spent."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

__all__ = ["Single"]


class Single:
    """State that is refused a copy, a pickle and a life in a forked child, and is changed by one thread at a time.

    Examples
    --------
    >>> import copy
    >>> copy.copy(Single())
    Traceback (most recent call last):
    ...
    TypeError: a Single cannot be copied or pickled: two copies would not know of each other; share the object itself.
    """

    _twice: ClassVar[str] = "two copies would not know of each other; share the object itself."

    def __init__(self) -> None:
        self._born = os.getpid()
        self._mutex = threading.Lock()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: {self._twice}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Alone among threads, in the process that made the object."""
        if os.getpid() != self._born:
            # checked before the lock: another thread may have held it during the fork
            raise RuntimeError(
                f"this {type(self).__name__} lives in the memory of the process that made it, not in a forked child: "
                f"{self._twice}"
            )
        with self._mutex:
            yield
