"""``privfit demo``: the main job on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privfit.cli_common import AsJson, emit

__all__ = ["demo"]


def demo(
    directory: Annotated[Path, typer.Argument(help="Where files and figures go.")] = Path("privfit-demo"),
    rows: Annotated[
        int | None, typer.Option(help="Use only the first rows (a quick look).", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the whole job on real data, from a budget to fitted models.

    Releases a census table at two budgets, fits models to the released files
    as another person would, and compares them with the raw data. Takes half a
    minute; writes the releases, their guarantees as text, and three figures.

    For example:

      privfit demo
    """
    from rich.console import Console

    from privfit.demo import DELTA, run_demo

    result = run_demo(directory, rows=rows, console=Console(quiet=True) if as_json else None)
    if not as_json:
        return
    payload = {
        "files": list(result.files),
        "seconds": result.seconds,
        "releases": [
            {
                "epsilon": chapter.epsilon,
                "delta": DELTA,
                "fits": {
                    model: {
                        label: {
                            "names": fit.names,
                            "estimate": fit.estimate,
                            "standard_error": fit.error,
                            "warnings": fit.notes,
                        }
                        for label, fit in fits.items()
                    }
                    for model, fits in chapter.fits.items()
                },
            }
            for chapter in result.chapters
        ],
    }
    emit(payload, True, lambda console: None)
