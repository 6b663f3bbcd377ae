"""Release a Parquet file to a Parquet file on all cores, against Polars streaming with noise that is not private.

Times are wall-clock seconds, because both sides use several cores, and hold on a quiet machine only.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, duration, installed, medians, row

from privfit.mechanisms import Box, SymmetricLaplace
from privfit.mechanisms.streaming import release_file

COLUMNS = [f"x{j}" for j in range(10)]


def write_table(path: Path, rows: int) -> None:
    """A table of uniform doubles in row groups of a million rows at most."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, rows, 1_000_000):
            size = min(1_000_000, rows - start)
            writer.write_table(pa.table({name: generator.random(size) for name in COLUMNS}))


def unsafe(source: Path, target: Path) -> None:
    """Polars' streaming engine with numpy's Laplace noise: fast, and private for nobody."""
    import polars as pl

    generator = np.random.default_rng()

    def noisy(column: Any) -> Any:
        return column + pl.Series(generator.laplace(size=len(column)))

    columns = [pl.col(name).map_batches(noisy, return_dtype=pl.Float64, is_elementwise=True) for name in COLUMNS]
    pl.scan_parquet(source).with_columns(columns).sink_parquet(target)


@row
def parquet_to_parquet(quick: bool) -> list[Row]:
    """One file, and a folder of parts, which saves putting the parts together."""
    rows = 2_000 if quick else 10_000_000
    box = Box(dict.fromkeys(COLUMNS, (0, 1)))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        source, peer = Path(folder) / "in.parquet", Path(folder) / "unsafe.parquet"
        write_table(source, rows)
        for name in ("out.parquet", "out"):
            made: list[Path] = []

            def ours(name: str = name, made: list[Path] = made) -> None:
                target = Path(folder) / f"{len(made)}{name}"
                release_file(source, target, SymmetricLaplace(1.0), box, progress=False)
                made.append(target)

            calls = [ours, *([lambda: unsafe(source, peer)] if installed("polars") else [])]
            seconds, *other = medians(*calls, quick=quick, repeats=3, clock=time.perf_counter)
            what = f"Parquet to {'Parquet' if name.endswith('parquet') else 'a folder'}, {rows:.0e} x 10, all cores"
            size = sum(p.stat().st_size for p in (made[0].rglob("*") if made[0].is_dir() else made[:1])) / (80 * rows)
            own = f"{duration(seconds)}, {100 * size:.0f} % of 8 bytes per value"
            text, ratio = "Polars not installed", None
            if other:
                text = f"Polars streaming (unsafe): {duration(other[0])}, {peer.stat().st_size / (0.8 * rows):.0f} %"
                ratio = seconds / other[0]
            found.append(Row(what, own, text, ratio, "2 times Polars", None if ratio is None else ratio <= 2.0))
    return found
