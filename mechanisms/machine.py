r"""What the arithmetic of a release depends on, as one key; and the note on disk that a machine of that key passed.

The self-check takes a fraction of a second, too long for every short-lived process. Its outcome is a function of
the interpreter, numpy and its processor dispatch, the mathematical library, the processor and the sampler's own
source. Their digest names a small file in the user's cache folder; only a pass is noted. Whatever is odd about the
file (owner, permissions, contents, no folder) means that the check runs again, never that it is skipped.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import re
import stat
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["cache_folder", "fingerprint", "note_pass", "passed_before"]

_VARIABLES = ("LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES")
_CPU_LINES = r"^(?:vendor_id|cpu family|model|model name|stepping|microcode|flags|Features|CPU \w+)\s*:.*"
_NOTE = "privfit: this machine's arithmetic passed the self-check\n"


def fingerprint(*modules: ModuleType) -> str:
    """Return a key of this interpreter, its libraries, this processor and the source of `modules`.

    Parameters
    ----------
    *modules : module
        Whose source is part of the key, so that a changed sampler or check is checked anew.

    Returns
    -------
    str
        64 hexadecimal digits; the empty string if the source cannot be read, and then nothing is noted.

    Examples
    --------
    >>> len(fingerprint())
    64
    """
    try:
        source = [inspect.getsource(module) for module in modules]
    except (OSError, TypeError):
        return ""
    return hashlib.blake2b(repr([*_interpreter(), *_processor(), *source]).encode(), digest_size=32).hexdigest()


def _interpreter() -> list[Any]:
    import mpmath
    import numpy as np

    return [
        sys.version,
        sys.implementation.cache_tag,
        os.path.realpath(sys.executable or ""),
        np.__version__,
        os.path.realpath(np.__file__),
        # Compiler and the processor features numpy found at run time.
        np.show_config(mode="dicts"),
        mpmath.__version__,
        platform.libc_ver(),
        [os.environ.get(name, "") for name in _VARIABLES],
    ]


def _processor() -> list[Any]:
    own = [platform.system(), platform.release(), platform.version(), platform.machine(), platform.processor()]
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return own
    # Every kind of core that is there; clock speeds and core numbers change, these lines do not.
    return own + sorted(set(re.findall(_CPU_LINES, text, re.MULTILINE)))


def cache_folder() -> Path | None:
    """Return the folder of the notes, or None for no cache.

    The environment variable PRIVFIT_CACHE names it; empty means no cache. Without it, the usual place of the
    system: XDG_CACHE_HOME or ~/.cache, ~/Library/Caches, or LOCALAPPDATA, each with a folder privfit.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, {"PRIVFIT_CACHE": ""}):
    ...     print(cache_folder())
    None
    """
    chosen = os.environ.get("PRIVFIT_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    usual = {"Windows": ("LOCALAPPDATA", "AppData/Local"), "Darwin": ("", "Library/Caches")}
    variable, below_home = usual.get(platform.system(), ("XDG_CACHE_HOME", ".cache"))
    named = os.environ.get(variable, "") if variable else ""
    # The XDG specification: a relative path is to be ignored.
    return (Path(named) if os.path.isabs(named) else home / below_home) / "privfit"


def passed_before(key: str) -> bool:
    """Return whether a sound note says that a machine of this key passed; any doubt is a no.

    Parameters
    ----------
    key : str
        From `fingerprint`.

    Examples
    --------
    >>> passed_before("")
    False
    """
    folder = cache_folder()
    if folder is None or not key:
        return False
    try:
        handle = os.open(_file(folder, key), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not _private(found):
                return False
            return file.read(len(_contents(key)) + 1) == _contents(key)
    except (OSError, ValueError):
        return False


def note_pass(key: str) -> None:
    """Note that a machine of this key passed: a whole file or none, readable by its owner; failing is no error.

    Parameters
    ----------
    key : str
        From `fingerprint`.

    Examples
    --------
    >>> note_pass("")
    """
    folder = cache_folder()
    if folder is None or not key:
        return
    spare = folder / f".{os.getpid()}-{os.urandom(8).hex()}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(_contents(key))
        os.replace(spare, _file(folder, key))
    except (OSError, ValueError):
        try:
            spare.unlink(missing_ok=True)
        except (OSError, ValueError):
            return


def _private(found: os.stat_result) -> bool:
    """Whether the file is this user's and writable by nobody else, where the system has such owners."""
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _file(folder: Path, key: str) -> Path:
    return folder / f"selfcheck-{key}"


def _contents(key: str) -> bytes:
    return f"{_NOTE}{key}\n".encode()
