"""The folder in which a release to a file comes about, and from which it goes on after a crash.

The noise of a release is a function of its master key, and the key outlives a crash in a file of this folder. Two
rules follow. One key, one table: two releases under one key differ by exactly what changed in the data, so the folder
remembers what is released and goes on with nothing else. One table, one key: a block that is released again under a
second key is a second release, so the key stays until the last block is written, and a block that is computed twice
is the same bytes twice. The order is: state, ledger, note that the ledger is charged, key, parts, the whole, note
that it is whole; then the key is removed, the target is put in place, and the rest is removed. What a crash leaves
can be continued from every point of it, and nothing is drawn before it is paid for.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfit.accounting.filelock import locked
from privfit.mechanisms.atomic import TEMPORARY, replacing
from privfit.mechanisms.keystream import KEY_BYTES, MasterKey, fresh_master
from privfit.mechanisms.work_state import (
    LOCK,
    STATE,
    check_ours,
    check_same,
    choice,
    flush_folder,
    read_state,
    write_private,
    write_state,
)

if TYPE_CHECKING:
    from privfit.accounting import Ledger

__all__ = ["UNFINISHED", "WorkFolder", "is_delivered", "read_key", "work_folder", "work_path"]

UNFINISHED = ".unfinished"
"""What is appended to the target's name."""

_KEY = "key"


def work_path(target: Path) -> Path:
    """Return the work folder's path.

    Examples
    --------
    >>> work_path(Path("out.parquet")).name
    'out.parquet.unfinished'
    """
    return target.with_name(target.name + UNFINISHED)


def read_key(path: Path) -> MasterKey:
    """Return the key in a work folder, also for a process that does not hold it and makes parts of the release.

    Parameters
    ----------
    path : Path
        The work folder.

    Raises
    ------
    FileNotFoundError
        If there is none: the release is over, or the folder is not where this process can see it.
    """
    return MasterKey((path / _KEY).read_bytes())


def is_delivered(target: Path) -> bool:
    """Return whether a crash came after the target was in place and before its work folder was gone.

    Examples
    --------
    >>> is_delivered(Path("no-such-file.parquet"))
    False
    """
    path = work_path(target)
    try:
        whole = json.loads((path / STATE).read_text()).get("whole")
    except (OSError, ValueError, AttributeError):
        return False
    return isinstance(whole, str) and not (path / whole).exists() and target.exists()


@contextmanager
def work_folder(target: Path, record: Mapping[str, Any], overwrite: bool = False) -> Iterator[WorkFolder]:
    """Begin a release to `target`, or go on with it, and keep all other processes from doing so.

    Parameters
    ----------
    target : Path
        Where the release will be; the folder is beside it.
    record : mapping
        Plain JSON values that fix the release: a parameter's name and its value, with the source, and how a ledger is
        charged. The same call has the same record.
    overwrite : bool
        Whether a file at `target` may be replaced; a folder never is.

    Yields
    ------
    WorkFolder

    Raises
    ------
    FileExistsError
        If there is something at `target` that may not be replaced.
    BlockingIOError
        If another process works on this target.
    ValueError
        If the folder belongs to a release with another record, or is no work folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     target = Path(place) / "out.txt"
    ...     with work_folder(target, {"law": "a"}) as work:
    ...         key = work.master()
    ...         _ = work.whole_path.write_text("released")
    ...         work.note_whole()
    ...         work.deliver()
    ...     [child.name for child in Path(place).iterdir()]
    ['out.txt']
    """
    path = work_path(target)
    plain = json.loads(json.dumps(dict(record), allow_nan=False))
    if not is_delivered(target):
        _check_target(target, overwrite)
    with ExitStack() as held:
        _take_folder(path, target, held)
        if is_delivered(target) and read_state(path, target)["record"] != plain:
            _remove(path)
            _check_target(target, overwrite)
            _take_folder(path, target, held)
        if (path / STATE).exists():
            state = read_state(path, target)
            check_same(state["record"], plain, path, target)
            for left in path.rglob(f".*{TEMPORARY}"):
                left.unlink(missing_ok=True)
        else:
            check_ours(path)
            state = {"record": plain, "release": secrets.token_hex(16), "charged": None, "whole": None}
            write_state(path, state)
        yield WorkFolder(path, target, state)


def _check_target(target: Path, overwrite: bool) -> None:
    if target.is_dir():
        raise FileExistsError(f"{target} is a folder that is there already; choose another name, or remove it.")
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"{target} exists; a second release adds to what the first revealed. Choose another name, or allow it to "
            "be overwritten."
        )


def _take_folder(path: Path, target: Path, held: ExitStack) -> None:
    busy = BlockingIOError(f"another process is writing {target}; wait until it is done, or stop it.")
    path.mkdir(mode=0o700, exist_ok=True)
    try:
        _check_private(path)
        descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        # The process that had the folder has just finished and removed it.
        raise busy from None
    held.callback(os.close, descriptor)
    try:
        held.enter_context(locked(descriptor, exclusive=True, wait=False))
        current = os.stat(path / LOCK)
    except (BlockingIOError, FileNotFoundError):
        raise busy from None
    if not os.path.samestat(os.fstat(descriptor), current):
        raise busy


def _check_private(path: Path) -> None:
    """Refuse a folder in which others could put a key that they know, or to which somebody's link leads."""
    found = path.lstat()
    if os.name == "posix" and (
        not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077 or found.st_uid != os.geteuid()
    ):
        raise ValueError(
            f"{path} must be a folder that nobody but you can use, since the key of the noise lies in it. If it was "
            "there before, find out who made it and remove it; if the file system has no such rights, release to "
            "another one."
        )


def _clear(path: Path) -> None:
    """Remove all but the lock: the key first, the state last."""
    (path / _KEY).unlink(missing_ok=True)
    for child in path.iterdir():
        if child.is_dir():
            shutil.rmtree(child)
        elif child.name not in (LOCK, STATE):
            child.unlink()
    (path / STATE).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    _clear(path)
    # Where an open file cannot be removed, a folder with the lock alone is left behind.
    with suppress(PermissionError):
        (path / LOCK).unlink()
        path.rmdir()


@dataclass(eq=False, repr=False)
class WorkFolder:
    """A release under way (see `work_folder`), held by one process.

    Attributes
    ----------
    path : Path
        The folder.
    target : Path
    """

    path: Path
    target: Path
    _state: dict[str, Any]

    def __repr__(self) -> str:
        return f"WorkFolder({str(self.path)!r})"

    @property
    def release_id(self) -> str:
        """32 hexadecimal digits that tell this release from all others."""
        return str(self._state["release"])

    @property
    def parts(self) -> Path:
        """Folder of the finished parts, whose name says which release they belong to.

        A worker that outlives a crash of its parent writes there or, once the release is over, nowhere.
        """
        return self.path / f"parts-{self.release_id}"

    @property
    def whole_path(self) -> Path:
        """Where the whole release is to be put together, before it moves to the target."""
        return self.path / "whole"

    @property
    def is_whole(self) -> bool:
        """Whether the whole release has been written, here or already at the target."""
        return self._state["whole"] is not None

    @contextmanager
    def charged(self, spend: AbstractContextManager[Any], ledger: Ledger | None) -> Iterator[None]:
        """Charge the ledger unless it holds this release's entry, and note it; the block may draw noise.

        Parameters
        ----------
        spend : context manager
            From `privfit.mechanisms.charging.spending`.
        ledger : Ledger or None

        Raises
        ------
        BudgetExceeded
            If the ledger refuses; the folder is removed then.
        """
        entry = self._state["charged"]
        if entry is not None and (ledger is None or any(_plain(known) == entry for known in ledger.entries)):
            yield
            return
        with ExitStack() as stack:
            try:
                made = stack.enter_context(spend)
            except BaseException:
                # Without a charge there is no key, so that nothing is lost with a folder that is new.
                if entry is None:
                    _remove(self.path)
                raise
            self._note(charged={} if ledger is None else _plain(made))
            yield

    def master(self) -> MasterKey:
        """Return the release's master key, drawn at the first call.

        Raises
        ------
        ValueError
            If the key is gone or damaged although there are parts.
        """
        path = self.path / _KEY
        if not path.exists():
            if self.parts.exists() or self.is_whole:
                raise ValueError(f"{path} is gone. {choice(self.path, self.target)}")
            with replacing(path) as temporary:
                write_private(temporary, fresh_master())
        key = read_key(self.path)
        if len(key) != KEY_BYTES:
            raise ValueError(f"{path} is damaged. {choice(self.path, self.target)}")
        return key

    def note_whole(self, whole: Path | None = None) -> None:
        """Write down that the release is finished and has reached the disk; only `deliver` is left from now on.

        Parameters
        ----------
        whole : Path, optional
            What is to become the target: `whole_path` or, for a release in parts, `parts`.
        """
        self._note(whole=(whole or self.whole_path).name)

    def deliver(self) -> None:
        """Remove the key, move the whole release to the target, replacing a file there, and remove the folder.

        Raises
        ------
        FileNotFoundError
            If a crash came after the move, and the target is gone since; the folder is removed.
        """
        if not self.is_whole:
            raise ValueError(f"{self.path} holds no whole release yet.")
        # a release that is out and the key of its noise are never there together, whatever fails from here on
        (self.path / _KEY).unlink(missing_ok=True)
        whole = self.path / self._state["whole"]
        if whole.exists():
            os.replace(whole, self.target)
            flush_folder(self.target.parent)
        delivered = self.target.exists()
        _remove(self.path)
        if not delivered:
            raise FileNotFoundError(
                f"this release was finished earlier, and {self.target} has been taken away since: look for it. The "
                "same call again is another release of the same records."
            )

    def _note(self, **changes: Any) -> None:
        self._state = {**self._state, **changes}
        write_state(self.path, self._state)


def _plain(entry: Any) -> dict[str, Any]:
    """What tells an entry of a ledger from others."""
    return {"time": entry.time, "label": entry.label, "part": entry.part}
