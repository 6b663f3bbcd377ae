"""The noise in an index ``u = theta'x + o``, and the terms that correct a loss for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.corrections import Term
from privfit.estimators.symbols import Identity, Symbol

__all__ = ["IndexNoise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class IndexNoise:
    """What is known of the noise in the index ``u = theta'x + o``, and how it is corrected.

    Parameters
    ----------
    terms : tuple of Term
        The corrected loss, a sum over designs.
    variances : ndarray, shape (parts, p)
        Diagonal of the law's Sigma for the design coordinates, per part.
    constants : ndarray, shape (parts,)
        The same for the offset.
    reach : ndarray, shape (parts,), optional
        Per part, the bound of q z under which exponential moments exist; none if left out.
    releases : int
        How often the records were released: the corrected loss is the mean over these.
    shares : ndarray, shape (parts,), optional
        Variance of a part's noise as a share of its Sigma (1 - delta0 under zero inflation); 1 if left out.

    Examples
    --------
    >>> IndexNoise((Term(1.0, 0, ()),), np.zeros((0, 1)), np.zeros(0)).corrects
    False
    """

    terms: tuple[Term, ...]
    variances: Floats
    constants: Floats
    reach: Floats | None = None
    releases: int = 1
    shares: Floats | None = None

    @property
    def variance(self) -> Floats:
        """Variance of the noise of each design coordinate in one release, all parts: shape (p,)."""
        shares = np.ones(self.constants.size) if self.shares is None else self.shares
        return np.asarray(shares @ self.variances, float) / self.releases

    @property
    def corrects(self) -> bool:
        """Whether the loss differs from the naive one."""
        return len(self.terms) > self.releases or any(
            not isinstance(f, Identity) for term in self.terms for f in term.factors
        )

    @property
    def moving(self) -> list[int]:
        """Parts whose variance of the index depends on theta."""
        return [p for p in range(self.constants.size) if self.variances[p].any()]

    def half_variance(self, theta: Floats) -> Floats:
        """Half the index's part of Sigma, per part: the q of the operators."""
        return np.asarray(0.5 * (self.variances @ theta**2 + self.constants), float)

    def admits(self, theta: Floats, max_variance: float) -> bool:
        """Whether the noise in the index is below a loss's `max_variance` (times the shape), part by part."""
        if self.reach is None or not np.isfinite(max_variance):
            return True
        return bool((2.0 * self.half_variance(theta) < max_variance * self.reach).all())

    def symbols(self, theta: Floats) -> list[Symbol]:
        """Operator of each term at theta."""
        q = self.half_variance(theta)
        return [term.symbol(q, [0] * q.size) for term in self.terms]

    def naive(self) -> IndexNoise:
        """Return the noise left uncorrected."""
        identity = tuple(Identity() for _ in self.constants)
        terms = tuple(Term(1.0 / self.releases, place, identity) for place in range(self.releases))
        return IndexNoise(terms, self.variances, self.constants, None, self.releases, self.shares)
