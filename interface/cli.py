"""The command ``privfit``: calibrate, curve, plan, ledger, release, audit, fit, demo.

A user's mistake ends with exit code 2 and one line on stderr, what a ledger refuses with exit code 3, an audit with
an alarm with exit code 4. Commands import what they need when they run, so that ``privfit --help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from privfit.cli_audit import audit
from privfit.cli_calibrate import calibrate
from privfit.cli_curve import curve
from privfit.cli_demo import demo
from privfit.cli_fit import fit
from privfit.cli_ledger import ledger
from privfit.cli_plan import plan
from privfit.cli_release import release

__all__ = ["app", "main", "run"]

MISTAKE, REFUSED, BUG = 2, 3, 70

app = typer.Typer(
    name="privfit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (calibrate, curve, plan, release, audit, fit, demo):
    app.command(no_args_is_help=command is not demo)(command)
app.add_typer(ledger)


def _show_version(wanted: bool) -> None:
    if wanted:
        from privfit import __version__

        typer.echo(f"privfit {__version__}")
        raise typer.Exit()


@app.callback()
def front(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fit the noise to a privacy budget, then fit models to the noisy data.

    A data holder calibrates noise (calibrate, curve), predicts what it costs
    (plan), keeps account of what is spent (ledger), releases a table once
    (release) and tests whether a mechanism keeps its promise (audit). Anybody who has the released file
    fits models to it, corrected for the noise (fit).
    Start with: privfit demo
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave Python with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Examples
    --------
    >>> main(["--version"])
    Traceback (most recent call last):
        ...
    SystemExit: 0
    """
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code.

    0: done; 2: a mistake of the user; 3: a ledger refuses; 4: an audit raised an alarm; 70: a mistake of ours.

    Parameters
    ----------
    arguments : sequence of str

    Returns
    -------
    int

    Examples
    --------
    >>> run(["--version"])
    privfit 0.1.0
    0
    """
    given = list(arguments) or ["--help"]
    try:
        code = app(args=given, prog_name="privfit", standalone_mode=False)
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        return _complain(_one_line(error), _code(error))
    except typer.Abort as error:
        return _complain(" ".join(["stopped.", *_notes(error.__cause__)]))
    except Exception as error:
        if hasattr(error, "format_message"):  # an unknown command, option or value
            text = error.format_message()
            return _complain(text) if text else MISTAKE  # without text, the help has been shown
        if os.environ.get("PRIVFIT_DEBUG"):
            raise
        # The message of an unforeseen error could hold a cell of the table, so it is not shown.
        _complain(f"unforeseen {type(error).__name__}; please report it (PRIVFIT_DEBUG=1 shows where).")
        return BUG
    return code if isinstance(code, int) else 0


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return " ".join([f"{error.filename}: {error.strerror}.", *_notes(error)])
    return " ".join([str(error), *_notes(error)])


def _notes(error: BaseException | None) -> list[str]:
    """What was said about an error on its way, for instance how to go on."""
    return list(getattr(error, "__notes__", []))


def _code(error: Exception) -> int:
    from privfit.accounting import BudgetExceeded

    return REFUSED if isinstance(error, BudgetExceeded) else MISTAKE


def _complain(text: str, code: int = MISTAKE) -> int:
    print(f"privfit: {' '.join(text.split())}", file=sys.stderr)
    return code
