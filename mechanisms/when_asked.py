"""Names of a package that are loaded when they are first asked for, because most programs never do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["when_asked"]


def when_asked(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package whose modules are loaded when they are needed.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping
        ``{name: module}``.

    Examples
    --------
    >>> get, _ = when_asked("privfit.mechanisms", {"audit": "auditing"})
    >>> get("audit").__module__
    'privfit.mechanisms.auditing'
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
