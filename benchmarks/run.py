"""Measure privfit against its peers: ``python benchmarks/run.py`` prints one table and writes results.md.

``pip install privfit[bench]`` brings the peer of the accounting rows; without it they show ours only.
``--quick`` runs everything on small inputs, as a test of the benchmarks and not of the speed. To add a row,
add one function with the decorator `harness.row` to one of the ``bench_*.py`` files.
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from pathlib import Path

import bench_accounting  # noqa: F401  (the import enters its rows)
import bench_calibration  # noqa: F401
import bench_composition  # noqa: F401
import bench_disk  # noqa: F401
import bench_estimation  # noqa: F401
import bench_release  # noqa: F401
import bench_scale  # noqa: F401
import bench_streaming  # noqa: F401
import harness
import numpy as np
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> str:
    """Run all rows and return the page that was printed and written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small inputs: checks that the rows run")
    parser.add_argument("--output", type=Path, default=HERE / "results.md", help="where the table goes")
    options = parser.parse_args(arguments)
    rows: list[harness.Row] = []
    with threadpool_limits(1):
        for function in harness.ROWS:
            rows += function(options.quick)
    page = "\n".join(["# Benchmarks", "", *_facts(options.quick), "", harness.table(rows), ""])
    print(page)
    options.output.write_text(page, encoding="utf-8")
    return page


def _facts(quick: bool) -> list[str]:
    features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[index]
    return [
        "Medians of processor time on one core (thread pools limited to 1), ours and the peer measured in "
        "turns in the same run; a ratio below 1 is in our favour.",
        f"Python {platform.python_version()}, numpy {version('numpy')}, scipy {version('scipy')}, "
        f"scikit-learn {version('scikit-learn')}, privfit {version('privfit')}; "
        f"{platform.machine()}, vector instructions up to {features[-1] if features else 'the baseline'}.",
        *(["", "**Small inputs (--quick): the numbers say nothing.**"] if quick else []),
    ]


if __name__ == "__main__":
    main()
