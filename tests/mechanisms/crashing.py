"""Kills a release at its k-th change of the file system, for every k, goes on, and compares; prints JSON.

A program of its own, because it forks: ``crashing.py FOLDER TARGET STRIDE``, for k = 1, 1 + STRIDE, ... Keys are
real; each one that is drawn is noted beside the release, so that what comes out can be computed anew from the last.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privfit.accounting import Budget, Ledger
from privfit.mechanisms import Box, Gaussian, load_release, release, releasing, work_folder
from privfit.mechanisms.keystream import MasterKey
from privfit.mechanisms.selfcheck import check_machine
from privfit.mechanisms.streaming import release_file
from privfit.mechanisms.work_folder import work_path

CHANGES = ("open", "replace", "rename", "unlink", "rmdir", "mkdir", "fsync", "write")
LAW, DOMAIN = Gaussian(4.0), Box({"x": (0, 1)})
PART_ROWS, ROWS = 1000, 2345
plain_open, plain_exit = open, os._exit


def shrink_parts(setattr_=setattr):
    """Make tasks, digests and parts of PART_ROWS rows, so that a small table has several."""
    for name, module in list(sys.modules.items()):
        if name.startswith("privfit.mechanisms.") and hasattr(module, "PART_ROWS"):
            setattr_(module, "PART_ROWS", PART_ROWS)


def count_changes(stop):
    """Count changes of the file system from now on, and die right before number `stop`."""
    count = [0]

    def wrap(function):
        def counted(*arguments, **keywords):
            count[0] += 1
            if count[0] == stop:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **keywords)

        return counted

    for name in CHANGES:
        setattr(os, name, wrap(getattr(os, name)))
    io.open = wrap(io.open)
    pq.write_table = wrap(pq.write_table)
    return count


def noted_key(folder):
    """Replace the source of keys by one that also writes them down."""

    def draw():
        key = MasterKey(os.urandom(32))
        with plain_open(folder / "keys", "a") as keys:
            keys.write(key.hex() + "\n")
        return key

    work_folder.fresh_master = draw


def call(folder, target):
    ledger = Ledger.open(folder / "book")
    release_file(folder / "in.parquet", target, LAW, DOMAIN, ledger=ledger, label="w", workers=1, progress=False)


def crash(folder, target, stop):
    noted_key(folder)
    count = count_changes(stop)
    call(folder, target)
    return count[0]


def values(path):
    return pq.read_table(path)["x"].to_numpy() if path.suffix != ".arrow" else load_release(path).frame["x"].to_numpy()


def go_on(folder, target):
    """Look at what a crash left, go on, and say what is wrong."""
    noted_key(folder)
    found, drawn_before = [], (folder / "keys").exists()
    if target.exists():
        with contextlib.suppress(ValueError):
            found.append((0, load_release(target).frame["x"].to_numpy()))
        if not found:
            return ["half a target"], 0
    for part in work_path(target).glob("parts-*/part-*"):
        found.append((int(part.stem.split("-")[1]) * PART_ROWS, pq.ParquetFile(part).read()["x"].to_numpy()))
    if drawn_before and not Ledger.open(folder / "book").entries:
        return ["a key before the ledger was charged"], 0
    if not target.exists() or (work_path(target) / "state.json").exists():
        call(folder, target)
    wrong = []
    key = MasterKey.fromhex((folder / "keys").read_text().split()[-1])
    releasing.fresh_master = lambda: key
    wanted = release(pq.read_table(folder / "in.parquet"), LAW, DOMAIN).frame["x"].to_numpy()
    final = load_release(target).frame["x"].to_numpy()
    if not np.array_equal(final, wanted):
        wrong.append("not the values of release")
    if not all(np.array_equal(cells, final[first : first + len(cells)]) for first, cells in found):
        wrong.append("a block under two keys")
    left = {child.name for child in folder.iterdir()} - {"in.parquet", "book", "keys", target.name}
    if left - {work_path(target).name} or list(work_path(target).rglob("key")):
        wrong.append(f"left behind: {sorted(left)}")
    return wrong, len(Ledger.open(folder / "book").entries)


def forked(action, *arguments):
    """Run an action in a child; what it returned, or None if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        pipe_write = os.write
        try:
            result = action(*arguments)
            pipe_write(writing, json.dumps(result).encode())
            plain_exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            plain_exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a release failed instead of being killed")
    return json.loads(text) if text else None


def write_source(path):
    pq.write_table(pa.table({"x": np.random.default_rng(0).random(ROWS)}), path, row_group_size=700)


def warm_up():
    """Import what a release needs, once for all children; nothing that starts threads."""
    check_machine()
    ledger = Ledger(Budget(9.0, 1e-3))
    release(pa.table({"x": [0.0, 1.0]}), LAW, DOMAIN, ledger=ledger)


def main(place, name, stride):
    warm_up()
    shrink_parts()
    forked(write_source, place / "in.parquet")
    wrong, charges, steps = [], [], None
    for stop in range(1, 10_000, stride):
        folder = place / str(stop)
        folder.mkdir()
        shutil.copy2(place / "in.parquet", folder)
        Ledger(Budget(9.0, 1e-3), folder / "book")
        steps = forked(crash, folder, folder / name, stop)
        found, charged = forked(go_on, folder, folder / name)
        wrong += [[stop, text] for text in found]
        charges.append(charged)
        shutil.rmtree(folder)
        if steps is not None:
            break
    print(json.dumps({"steps": steps, "wrong": wrong, "charges": charges}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
