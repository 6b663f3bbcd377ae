r"""What is asked of releases of a law besides its curve: fit, no shared noise, grid points, declared labels.

The first input is released twice and the second once, each `samples` times, in calls of their own; noise is what
is left when the input is subtracted. A label y of randomised response is kept with probability p, any other one
comes with (1 - p)/(k - 1), and two rows of the same input agree with p^2 + (1 - p)^2/(k - 1): exact binomials.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.audit_draws import Drawn, Part
from privfit.mechanisms.audit_laws import cell_mass, is_known
from privfit.mechanisms.audit_noise import SHARED, Sample, atom_test, fit_tests, joint_tests, sharing_tests
from privfit.mechanisms.audit_report import Planned
from privfit.mechanisms.audit_statistics import Finding, count_test
from privfit.mechanisms.blocks import block_rows
from privfit.mechanisms.discrete_laplace import DiscreteLaplace
from privfit.mechanisms.law import Law
from privfit.mechanisms.randomized_response import RandomizedResponse

__all__ = ["release_tests"]

Floats = NDArray[np.float64]
ENDS = (0, 0, 1)
GROUPS = 20
ROUNDING = 1e-15
GRID_MEANING = "an output off the declared grid, not finite, or -0.0, betrays its input in its bits"


def release_tests(law: Law, parts: list[Part], drawn: list[Drawn], stochastic: bool) -> list[Planned]:
    """Return the tests of three releases: of the first input, of the first again, of the second.

    Parameters
    ----------
    law : Law
    parts : list of Part
    drawn : list of three
        What `draw` returned for each.
    stochastic : bool
        How values went to the grid.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> from privfit.mechanisms.audit_draws import draw, parts_of
    >>> law, box = Gaussian(1.0), Box({"x": (0, 1)})
    >>> parts = parts_of(law, box, "record")
    >>> drawn = [draw(law, box, parts, end, 500, "nearest") for end in (0, 0, 1)]
    >>> any(test.run(1e-6).alarm for test in release_tests(law, parts, drawn, False))
    False
    """
    planned: list[Planned] = []
    additive: list[tuple[Floats, Floats, float]] = []
    scales: list[Floats] = []
    for place, part in enumerate(parts):
        outputs = [own[place] for own in drawn]
        if part.labels:
            planned += _label_tests(part, outputs)
            continue
        planned.append(_grid_test(part, outputs))
        sample = _sample(part, outputs, stochastic)
        planned += fit_tests(sample)
        if part.law.exact_fraction and is_known(part.law):
            planned.append(_atoms(part, sample, outputs, stochastic))
        first, again = (np.nan_to_num(y - part.ends[0], posinf=0.0, neginf=0.0) for y in outputs[:2])
        planned += sharing_tests(sample, first, again, (1, block_rows(sample.dim)))
        additive.append((sample.z, sample.blur, sample.slack))
        scales.append(sample.law.scales(sample.dim))
    if additive:
        z, blur = (np.concatenate(own, axis=-1) for own in list(zip(*additive, strict=True))[:2])
        planned += joint_tests(law, np.concatenate(scales), z, blur, sum(own[2] for own in additive))
    return planned


def _sample(part: Part, outputs: list[Floats], stochastic: bool) -> Sample:
    assert isinstance(part.law, AdditiveLaw)
    steps = (1.0 if stochastic else 0.5) + (1.0 if isinstance(part.law, DiscreteLaplace) else 0.0)
    noise = [y - part.ends[end] for y, end in zip(outputs, ENDS, strict=True)]
    # What is not finite raises an alarm of its own; here it only must not stop the other tests.
    z = np.nan_to_num(np.concatenate(noise), nan=0.0, posinf=1e300, neginf=-1e300)
    return Sample(part.law, z, steps * part.grid, part.law.slack(part.domain), part.name)


def _grid_test(part: Part, outputs: list[Floats]) -> Planned:
    bad = 0
    for y in outputs:
        with np.errstate(all="ignore"):
            steps = y / part.grid
            off = ~np.isfinite(y) | (steps != np.rint(steps)) | ((y == 0) & np.signbit(y))
        bad += int(off.sum())
    found = Finding(float(bad), 0.0, bad > 0)
    return Planned(f"{part.name}: values off the grid", GRID_MEANING, lambda level: found, certain=True)


def _atoms(part: Part, sample: Sample, outputs: list[Floats], stochastic: bool) -> Planned:
    """The number of exact rows, against delta0 + (1 - delta0) P(noise rounds to nothing)."""
    grid, scales = part.grid, sample.law.scales(sample.dim)
    exact, low, high = 0, 1.0, 0.0
    for y, end in zip(outputs, ENDS, strict=True):
        x = part.ends[end]
        if stochastic:
            exact += int((np.abs(y - x) < grid).all(axis=1).sum())
            ends = (0.0, cell_mass(part.law, 2 * grid / scales))
        else:
            exact += int((y == part.exact(end)).all(axis=1).sum())
            # noise may reach from the input to the nearer and to the farther side of its grid cell
            off = np.abs(part.exact(end) - x) / grid
            near, far = (cell_mass(part.law, (0.5 + sign * off) * grid / scales) for sign in (-1, 1))
            ends = ((near + far) / 2,) * 2 if sample.dim == 1 else (0.0, far)
        low, high = min(low, ends[0]), max(high, ends[1])
    return atom_test(sample, exact, low, high)


def _label_tests(part: Part, outputs: list[NDArray[Any]]) -> list[Planned]:
    law = part.law
    assert isinstance(law, RandomizedResponse)
    labels, keep = law.categories, law.keep_probability
    steps = [(y[:, 0] - int(part.ends[end][0])) % labels for y, end in zip(outputs, ENDS, strict=True)]
    unknown = sum(int((y < 0).sum()) for y in outputs)
    found = Finding(float(unknown), 0.0, unknown > 0)
    name, meaning = part.name, "labels are kept, or exchanged, with other probabilities than stated"
    planned = [
        Planned(f"{name}: undeclared labels", "a label that was never declared", lambda level: found, certain=True)
    ]
    for title, offsets in (("first input", np.concatenate(steps[:2])), ("second input", steps[2])):
        kept = int((offsets == 0).sum())
        planned.append(Planned(f"{name}: kept labels, {title}", meaning, _share(kept, offsets, keep)))
    everything = np.concatenate(steps)
    groups = min(GROUPS, labels - 1) if labels > 2 else 0
    for number, group in enumerate(np.array_split(np.arange(1, labels), groups) if groups else []):
        count = int(((everything >= group[0]) & (everything <= group[-1])).sum())
        chance = (1 - keep) * len(group) / (labels - 1)
        planned.append(Planned(f"{name}: lies, group {number + 1}", meaning, _share(count, everything, chance)))
    agree = keep**2 + (1 - keep) ** 2 / (labels - 1)
    first, again = steps[:2]
    lags = [lag for lag in (1, block_rows(1)) if len(first) > 2 * lag]
    pairs = [(f"rows {lag} apart", first[:-lag], first[lag:], lag) for lag in lags]
    for title, a, b, lag in [*pairs, ("two releases", first, again, 0)]:
        # disjoint pairs are independent of each other
        chosen = np.arange(len(a)) % (2 * lag) < lag if lag else np.ones(len(a), dtype=bool)
        equal = (a == b)[chosen]
        planned.append(Planned(f"{name}: {title}, equal", SHARED, _share(int(equal.sum()), equal, agree)))
    return planned


def _share(count: int, of: NDArray[Any], chance: float) -> partial[Finding]:
    return partial(count_test, count, len(of), chance - ROUNDING, chance + ROUNDING)
