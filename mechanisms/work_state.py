"""What a work folder knows of its release: the record that fixes it, its number, what was charged, what is whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privfit.accounting.filelock import flush_to_disk
from privfit.mechanisms.atomic import replacing

__all__ = [
    "LOCK",
    "STATE",
    "check_ours",
    "check_same",
    "choice",
    "flush_folder",
    "read_state",
    "write_private",
    "write_state",
]

STATE, LOCK = "state.json", "lock"
"""Names of the files in a work folder that hold the state, and the lock of the process that works there."""


def read_state(path: Path, target: Path) -> dict[str, Any]:
    """Return the state in a work folder, or raise ValueError if it cannot be read."""
    try:
        state = json.loads((path / STATE).read_text())
        complete = {"record", "release", "charged", "whole"} <= set(state)
    except (ValueError, TypeError):
        complete = False
    if not complete:
        raise ValueError(f"{path / STATE} cannot be read. {choice(path, target)}")
    return dict(state)


def check_same(old: Mapping[str, Any], new: Mapping[str, Any], path: Path, target: Path) -> None:
    """Raise ValueError, naming what differs, unless two records are the same."""
    other = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if other:
        raise ValueError(
            f"{path} holds an unfinished release that differs from this call in: {', '.join(other)}. Under its key, "
            f"other data or another law would reveal the differences. {choice(path, target)}"
        )


def choice(path: Path, target: Path) -> str:
    """Return the next steps after a refusal."""
    return (
        f"Repeat the call that began {target.name} as it was, to go on; or delete {path} to give it up: what "
        "anybody has seen of it counts as released, and a new call is another release of the same records."
    )


def check_ours(path: Path) -> None:
    """Raise ValueError if a folder without a state holds files of somebody else."""
    foreign = [c.name for c in path.iterdir() if c.name != LOCK and not c.name.startswith(f".{STATE}")]
    if foreign:
        raise ValueError(f"{path} has no {STATE} but other files, so it is no work folder of a release; move it away.")


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write the state, whole or not at all, so that only its owner can read it."""
    with replacing(path / STATE) as temporary:
        write_private(temporary, json.dumps(state, indent=1).encode())


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def flush_folder(path: Path) -> None:
    """Return when the names in a folder have reached the disk."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        flush_to_disk(descriptor)
    finally:
        os.close(descriptor)
