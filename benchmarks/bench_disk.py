"""Fits to a release on disk: time, passes and peak memory of a process of its own for each model.

``python benchmarks/bench_disk.py --rows 10000000 100000000`` writes ``disk_results.md``. A table of ten columns, a
response and a label is released to one Parquet file under `SymmetricLaplace` noise of shape 2, which has a polynomial
inverse; each model is then fitted from the file.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from harness import Row, duration, row, table

from privfit.estimators import LinearRegression, LogisticRegression, Mean
from privfit.mechanisms import Box, Categories, Laplace, Product, RandomizedResponse, SymmetricLaplace, release_file

HERE = Path(__file__).parent
COLUMNS = [f"x{j}" for j in range(10)]
SLOPES = np.linspace(-1, 1, len(COLUMNS))
MODELS = {
    "Mean": lambda path: Mean().fit_release(path, COLUMNS),
    "LinearRegression": lambda path: LinearRegression().fit_release(path, "y", COLUMNS),
    "LogisticRegression": lambda path: LogisticRegression().fit_release(path, "label", COLUMNS),
}
GOAL = 2048.0
"""MB of memory that a fit to 1e8 records may take."""


def write_release(folder: Path, rows: int) -> Path:
    """Write a table of multiples of 1/64, which compress, and release it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, target = folder / "in.parquet", folder / "out.parquet"
    rng = np.random.default_rng(0)
    kinds = [(name, pa.float64()) for name in COLUMNS]
    schema = pa.schema([*kinds, ("y", pa.float64()), ("label", pa.string())])
    with pq.ParquetWriter(source, schema) as writer:
        for start in range(0, rows, 1_000_000):
            size = min(1_000_000, rows - start)
            x = rng.integers(-64, 65, (size, len(COLUMNS))) / 64.0
            index = x @ SLOPES
            y = np.round(64.0 * (index + rng.normal(0.0, 0.5, size))) / 64.0
            label = np.where(rng.random(size) < 1.0 / (1.0 + np.exp(-index)), "yes", "no")
            writer.write_table(pa.table({**dict(zip(COLUMNS, x.T, strict=True)), "y": y, "label": label}))
    noise = {tuple(COLUMNS): SymmetricLaplace(0.3, shape=2), "y": Laplace(0.3), "label": RandomizedResponse(2.0)}
    boxes = (Box(dict.fromkeys(COLUMNS, (-1, 1))), Box({"y": (-8, 8)}), Categories({"label": ["no", "yes"]}))
    release_file(source, target, Product(noise), boxes, progress=False)
    source.unlink()
    return target


def fitted(model: str, path: str) -> str:
    """Fit in this process: what it took, as JSON."""
    began, wall = time.process_time(), time.perf_counter()
    fit = MODELS[model](path)
    spent, wall = time.process_time() - began, time.perf_counter() - wall
    # VmHWM is of this process alone; ru_maxrss begins with what the parent had
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    slopes = np.asarray(fit.params_)[-len(COLUMNS) :]
    truth = np.zeros(len(COLUMNS)) if model == "Mean" else SLOPES
    error = float(np.abs((slopes - truth) / np.asarray(fit.bse_)[-len(COLUMNS) :]).max())
    passes = fit.diagnostics_.get("passes", 1)
    return json.dumps({"peak": peak, "spent": spent, "wall": wall, "passes": passes, "error": error})


def measured(rows: int, models: list[str], *, apart: bool = True) -> list[Row]:
    """Release a table and fit the models to it, each in a process of its own (`apart`)."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = write_release(Path(folder), rows)
        size = path.stat().st_size / 2**20
        for model in models:
            call = [sys.executable, __file__, "--fit", model, str(path)]
            run = partial(subprocess.run, call, capture_output=True, text=True, check=True)
            own = json.loads(run().stdout if apart else fitted(model, str(path)))
            what = f"{model} on disk, n = {rows:,}, d = {len(COLUMNS)} ({size:,.0f} MB)"
            ours = (
                f"{own['peak']:.0f} MB, {own['passes']} passes, {duration(own['spent'])} of one core, worst estimate "
                f"{own['error']:.1f} standard errors off"
            )
            kept = own["peak"] <= GOAL
            found.append(Row(what, ours, "none", None, f"peak at most {GOAL:.0f} MB", kept))
            print(table(found[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    return found


@row
def disk_fits(quick: bool) -> list[Row]:
    return measured(2_000 if quick else 1_000_000, list(MODELS), apart=not quick)


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the page; or fit one model, in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--output", type=Path, default=HERE / "disk_results.md", help="where the table goes")
    parser.add_argument("--fit", nargs=2, metavar=("MODEL", "PATH"), help="fit one model to a release, print JSON")
    options = parser.parse_args(arguments)
    if options.fit:
        print(fitted(*options.fit))
        return
    found = [own for rows in options.rows for own in measured(rows, options.models)]
    facts = (
        "Peak resident memory of a process that fits one model from one Parquet file (about 180 MB of it are imports), "
        f"and processor time. Python {platform.python_version()}, {platform.machine()}."
    )
    page = "\n".join(["# Fits to releases on disk", "", facts, "", table(found), ""])
    print(page)
    options.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
