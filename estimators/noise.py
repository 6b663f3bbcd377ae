"""Which columns of a fit are noised, by how much, and in which independent parts.

`resolve_noise` turns the ``noise=`` argument (a law for every column of X, or laws keyed by column) into a
`NoiseModel` over the coordinates ``(x_1, ..., x_d, response)``; columns that are not named have no noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.errors import CapabilityError
from privfit.estimators.operators import Part, additive_parts, keep_probability
from privfit.estimators.row_noise import RowNoise
from privfit.mechanisms import Law, Product, RandomizedResponse

__all__ = ["NoiseModel", "resolve_noise"]

Floats = NDArray[np.float64]
RESPONSE = "y"


@dataclass(frozen=True)
class NoiseModel:
    """Noise of the coordinates ``(x_1, ..., x_d, response)``.

    Attributes
    ----------
    parts : tuple of Part
        Independent additive parts; variances have d + 1 entries.
    keep : float
        Probability that a label is unchanged (1: not randomised).
    laws : tuple of (str, str)
        Columns and law of each part, for reports.
    dim : int
        Number d of columns.
    categories : int
        Number of labels among which a randomised one was drawn.

    Examples
    --------
    >>> from privfit.mechanisms import SymmetricLaplace
    >>> resolve_noise(SymmetricLaplace(2.0), ["a", "b"], "t").variances
    array([4., 4., 0.])
    """

    parts: tuple[Part, ...]
    keep: float
    laws: tuple[tuple[str, str], ...]
    dim: int
    categories: int = 2

    @property
    def variances(self) -> Floats:
        """Diagonals of the laws' Sigma, summed, response last: the `covariance`, but for zero inflation."""
        return np.sum([part.variances for part in self.parts], axis=0) if self.parts else np.zeros(self.dim + 1)

    @property
    def covariance(self) -> Floats:
        """Total noise variance of each coordinate, response last."""
        return np.sum([part.covariance for part in self.parts], axis=0) if self.parts else np.zeros(self.dim + 1)

    def of_columns(self) -> NoiseModel:
        """Return the noise of the columns alone, the response's left out."""
        mask = np.append(np.ones(self.dim), 0.0)
        parts = [replace(part, variances=part.variances * mask) for part in self.parts]
        return replace(self, parts=tuple(part for part in parts if part.variances.any()))

    @property
    def moments_only(self) -> bool:
        """Whether a part has an exact inverse on polynomials up to degree 3 only."""
        return any(part.moments_only for part in self.parts)

    @property
    def noisy(self) -> bool:
        """Whether anything at all is noised."""
        return bool(self.parts) or self.keep < 1.0


def resolve_noise(
    noise: Any, columns: Sequence[Any], target: Any = RESPONSE, *, label: bool = False, strict: bool = True
) -> NoiseModel:
    """Read the ``noise=`` argument.

    Parameters
    ----------
    noise : None, Law, Product or mapping of columns to laws
        A plain law covers every column of X in order and leaves the response alone. Keys are names of
        `columns`, integer positions of X, or "y" (or `target`) for the response.
    columns : sequence
        Names of the columns of X.
    target : str or int
        Name of the response.
    label : bool
        Whether the response is a class label.
    strict : bool
        Refuse unknown columns (otherwise they are not part of this fit and are ignored).

    Raises
    ------
    TypeError, ValueError
        For something that is not a law, an unknown or repeated column, or a label law on numbers.
    CapabilityError
        For laws that differ by row, where there is one law for all.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> resolve_noise({"b": Gaussian(1.0)}, ["a", "b"]).variances
    array([0., 1., 0.])
    """
    dim = len(columns)
    places = {name: j for j, name in enumerate(columns)}
    # in a release "y" is a column like others
    response = ({target, RESPONSE} if strict else {target}) - set(places) | {target}
    parts: list[Part] = []
    laws: list[tuple[str, str]] = []
    keep, categories, seen = 1.0, 2, set[int]()
    for key, law in _assigned(noise, dim).items():
        names = key if isinstance(key, tuple) else (key,)
        found = [_place(name, places, response, dim, strict) for name in names]
        used = [place for place in found if place is not None]
        if not used:
            continue
        if seen.intersection(used) or len(set(used)) < len(used):
            raise ValueError(f"noise must name each column once, got {key!r} again. Join the laws in one part.")
        seen.update(used)
        laws.append((", ".join(map(str, names)), str(law)))
        if dim in used and (label or isinstance(law, RandomizedResponse)):
            keep = _label_part(law, used, label)
            categories = getattr(law, "categories", 2)
        else:
            parts += _parts_of(law, found, dim)
    return NoiseModel(tuple(parts), keep, tuple(laws), dim, categories)


def _assigned(noise: Any, dim: int) -> Mapping[Any, Law]:
    """Laws by columns, whatever form they were given in."""
    if noise is None:
        return {}
    if isinstance(noise, RandomizedResponse):
        raise TypeError(
            "noise must name the column of a RandomizedResponse: pass noise={'y': RandomizedResponse(...)}."
        )
    if isinstance(noise, Product):
        return noise.parts
    if isinstance(noise, Law):
        return {tuple(range(dim)): noise}
    if isinstance(noise, Mapping):
        return noise
    if isinstance(noise, RowNoise):
        raise CapabilityError(
            "RowNoise is for fit(X, y) of a regression, Mean or Quantile, whose rows are in memory. Elsewhere fit the "
            "releases of the groups as a list, by fit_release, or add one group after the other by partial_fit."
        )
    raise TypeError(
        "noise must be a law, a Product, a mapping of columns to laws, or None, "
        f"got {type(noise).__name__}. Import laws from privfit.mechanisms."
    )


def _label_part(law: Law, used: list[int], label: bool) -> float:
    """Probability that the label is kept."""
    if not label:
        raise TypeError(
            "noise of a numeric response must be an additive law, got RandomizedResponse. "
            "Use LogisticRegression for a label."
        )
    if len(used) > 1:
        raise TypeError("noise of a class label must be RandomizedResponse in a part of its own.")
    return keep_probability(law)


def _parts_of(law: Law, found: list[int | None], dim: int) -> list[Part]:
    """Parts of an additive law, spread over all coordinates of the fit."""
    parts = []
    for part in additive_parts(law, len(found)):
        spread = np.zeros(dim + 1)
        for place, variance in zip(found, part.variances, strict=True):
            if place is not None:
                spread[place] = variance
        if spread.any():
            parts.append(replace(part, variances=spread))
    return parts


def _place(name: Any, places: dict[Any, int], response: set[Any], dim: int, strict: bool) -> int | None:
    if name in places:
        return places[name]
    if name in response:
        return dim
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and 0 <= name < dim and strict:
        return int(name)
    if strict:
        raise ValueError(
            f"noise names the column {name!r}; the columns are {list(places)[:8]} and 'y' for the response. "
            "Use one of these, or an integer position of X; with the law of a release, fit_release(release, target) "
            "knows the response by its name."
        )
    return None
