"""A release's guarantee in words that its owner can hand on."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privfit.mechanisms.file_release import FileRelease
    from privfit.mechanisms.guarantee import Guarantee
    from privfit.mechanisms.releasing import Release

__all__ = ["expected_exact_rows", "report", "unreached"]


def expected_exact_rows(release: Release | FileRelease) -> dict[str, float]:
    """Return the expected number n delta0 of rows without noise, by the law's columns.

    Parameters
    ----------
    release : Release or FileRelease

    Returns
    -------
    dict
        Only laws that have such rows.
    """
    return {
        ", ".join(map(str, columns)): release.n_rows * own.exact_fraction
        for columns, own in release.parts.items()
        if own.exact_fraction > 0
    }


def unreached(promise: Guarantee) -> list[str]:
    """Return a line that explains each epsilon of a guarantee that is "none".

    A slack s of the sampler costs ``s (1 + e^epsilon)`` of delta, and rows without noise cost their share: delta falls
    with epsilon to a smallest value only.

    Parameters
    ----------
    promise : Guarantee

    Returns
    -------
    list of str
        Empty if every delta is reached.

    Examples
    --------
    >>> from privfit.mechanisms import Box, ZeroInflatedLaplace
    >>> promise = ZeroInflatedLaplace(1.0, delta0=0.1).guarantee(Box({"x": (0, 1)}))
    >>> unreached(promise)[0].split(": ")[1]
    'the smallest delta at any epsilon is 0.1 (record), 0.1 (attribute)'
    """
    (smallest,) = promise.deltas((700.0,))
    found = promise.epsilons()
    missing = [level for level in ("record", "attribute") if any(math.isinf(row[level]) for row in found)]
    if not missing:
        return []
    floors = ", ".join(f"{smallest[level]:.3g} ({level})" for level in missing)
    reason = f"a share of {promise.exact_fraction:.3g} of the rows has no noise"
    if promise.exact_fraction < 0.5 * min(smallest[level] for level in missing):
        reason = f"the numerical slack of {promise.slack:.3g} is charged 1 + e^epsilon times"
    return [f"none: the smallest delta at any epsilon is {floors}: {reason}."]


def report(release: Release | FileRelease) -> str:
    """Return the guarantee of a release as text (see `Release.report`).

    Parameters
    ----------
    release : Release or FileRelease

    Returns
    -------
    str

    Warns
    -----
    UserWarning
        If at least one row is expected to be released exactly.
    """
    promise = release.guarantee()
    lines = [
        f"{release.n_rows} rows released once under {release.law}",
        f"columns with noise: {', '.join(map(str, release.columns))}",
        "",
        str(promise),
        *unreached(promise),
        "",
        "record: all of a person's columns with noise are protected together; attribute: one of them, the "
        "others known. The number of rows is public.",
    ]
    for columns, expected in expected_exact_rows(release).items():
        lines.append(f"rows expected to be exact (to the grid) in {columns}: {expected:.4g}")
        if expected >= 1:
            text = (
                f"about {expected:.4g} of {release.n_rows} rows are released without noise in {columns}: "
                "delta0 is not small against 1/n. Lower delta0 or use SymmetricLaplace if none may be."
            )
            warnings.warn(text, UserWarning, stacklevel=3)
            lines.append("WARNING: " + text)
    if release.public:
        names = ", ".join(map(str, release.public))
        lines.append(f"NOT PROTECTED: {names}, published unchanged; linking them can single out a person.")
    if not release.secure:
        lines.append("NOT SECURE: the noise came from a reproducible source; for simulations only.")
    lines.append("A second release of the same records adds to what this one reveals.")
    return "\n".join(lines)
