"""What can be done with a trade-off curve: compare, compose, amplify, convert, draw, store.

Every method here states the contract; the mathematics stands in the module it calls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privfit.accounting.base import TradeOffCurve

__all__ = ["Operations"]

Floats = NDArray[np.float64]


class Operations:
    """Methods of `TradeOffCurve` that build on its numbers."""

    @property
    def _this(self) -> TradeOffCurve:
        """The object, known to be a curve: only `TradeOffCurve` derives from this class."""
        return cast("TradeOffCurve", self)

    def _comparison_grid(self) -> Floats:
        """Thresholds at which two curves are compared: dense where the profile moves, out to its far tail."""
        top = min(float(self._this._epsilon(np.asarray(1e-120), "estimate")), 1e6)
        top = max(top if math.isfinite(top) else 1e6, 1e-6)
        return np.unique(np.concatenate([np.linspace(0, top, 600), np.geomspace(top * 1e-6, top, 600)]))

    def dominates(self, other: TradeOffCurve, tolerance: float = 1e-9) -> bool:
        """Whether this curve lies above `other` everywhere, so that it is at least as private.

        Two curves are compared through their profiles: f1 >= f2 everywhere if and only if delta1 <= delta2
        everywhere. Both directions of an asymmetric pair are compared.

        Parameters
        ----------
        other : TradeOffCurve
        tolerance : float
            Relative difference of delta that still counts as equal.

        Returns
        -------
        bool

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(0.5).dominates(pa.gaussian(1.0))
        True
        >>> pa.laplace(1.0).dominates(pa.gaussian(1.0)), pa.gaussian(1.0).dominates(pa.laplace(1.0))
        (False, False)
        """
        from privfit.accounting.base import TradeOffCurve

        if not isinstance(other, TradeOffCurve):
            raise TypeError(f"other must be a TradeOffCurve, got {type(other).__name__}.")
        grid = np.union1d(self._comparison_grid(), other._comparison_grid())
        pairs = [(self._this, other), (self._this.reversed(), other.reversed())]
        absolute = self._this.precision.absolute + other.precision.absolute
        for a, b in pairs:
            # what is left beyond the largest loss of the other curve may be too small for a float, but it is there
            if b.infinite_mass == 0.0 and a.max_loss > b.max_loss * (1 + tolerance):
                return False
            if a.infinite_mass > b.infinite_mass * (1 + tolerance) + absolute:
                return False
            if np.any(a._delta(grid) > b._delta(grid) * (1 + tolerance) + absolute):
                return False
        return True

    def gdp(self) -> float:
        """Smallest mu for which the mechanism is mu-GDP, on the safe side; inf where there is none.

        For every eps the Gaussian curve that meets ``delta(eps)`` is found; mu is the largest of them.

        Returns
        -------
        float

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.gaussian(0.7).gdp(), 6)
        0.7
        >>> pa.zero_inflated(pa.gaussian(0.7), 0.01).gdp()
        inf
        """
        from privfit.accounting.gdp import tight_mu

        curve, turned = self._this, self._this.reversed()
        return max(tight_mu(curve), tight_mu(turned) if turned is not curve else 0.0)

    def compose(self, *others: TradeOffCurve) -> TradeOffCurve:
        """Curve of this mechanism and the others run independently on the same record.

        Exact for Gaussian curves, for any curve with discrete ones (randomised response) and for limits of
        symmetric Laplace noise; otherwise numbers between certified bounds (see composition.py). Calls are
        cheap: nothing is computed before a number is asked for.

        Parameters
        ----------
        *others : TradeOffCurve

        Returns
        -------
        TradeOffCurve

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(0.3).compose(pa.gaussian(0.4))
        GaussianCurve(mu=0.5)
        """
        from privfit.accounting.composition import compose

        return compose(self._this, *others)

    def self_compose(self, k: int) -> TradeOffCurve:
        """Curve of `k` independent runs of this mechanism on the same record.

        Parameters
        ----------
        k : int
            Number of runs, at least 1.

        Returns
        -------
        TradeOffCurve

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(0.5).self_compose(4)
        GaussianCurve(mu=1.0)
        """
        from privfit.accounting.composition import self_compose

        return self_compose(self._this, k)

    def subsample(self, rate: float, scheme: str = "poisson") -> TradeOffCurve:
        """Curve of this mechanism run on a random subsample of the records.

        Parameters
        ----------
        rate : float
            Share of the records in the sample, in (0, 1].
        scheme : {"poisson", "without_replacement"}
            How the sample is drawn. "poisson" (every record independently) protects against adding or
            removing one record, "without_replacement" (a fixed number) against replacing one; this curve must
            be stated for the same neighbours.

        Returns
        -------
        TradeOffCurve
            Covers both directions; ``str`` names the scheme and the neighbours.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(1.0).subsample(0.01).delta(0.1) < 0.01 * pa.gaussian(1.0).delta(0.1)
        True
        """
        from privfit.accounting.subsampling import subsample

        return subsample(self._this, rate, scheme)

    def group(self, k: int) -> TradeOffCurve:
        """Curve for neighbours that differ in `k` records instead of one.

        Parameters
        ----------
        k : int
            Number of records, at least 1.

        Returns
        -------
        TradeOffCurve

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(0.5).group(3)
        GaussianCurve(mu=1.5)
        """
        from privfit.accounting.group import group

        return group(self._this, k)

    def rdp(self, order: Any) -> Any:
        """Renyi divergence of the given order, the larger of both directions, from above.

        Parameters
        ----------
        order : float or array
            At least 1; 1 is the Kullback-Leibler divergence, inf the pure epsilon.

        Returns
        -------
        float or array
            ``inf`` where the divergence is infinite.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(2.0).rdp(4.0)
        8.0...
        """
        from privfit.accounting.renyi import rdp

        return rdp(self._this, order)

    def zcdp(self) -> float:
        """Smallest rho for which the mechanism is rho-zCDP, from above; inf where there is none.

        Returns
        -------
        float

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.gaussian(2.0).zcdp(), 6)
        2.0
        """
        from privfit.accounting.zcdp import zcdp

        return zcdp(self._this)

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Draw the trade-off curve, with the line of perfect privacy, and return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> import privfit.accounting as pa
        >>> pa.gaussian(1.0).plot().get_xlabel()
        'type I error (false-positive rate)'
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(4.5, 4.5))
        alpha = np.concatenate([[0.0], np.geomspace(1e-6, 0.02, 60), np.linspace(0.021, 1.0, 300)])
        ax.plot(alpha, self._this.curve(alpha), **({"label": str(self)} | line))
        if not any(drawn.get_gid() == "perfect privacy" for drawn in ax.lines):
            ax.plot([0, 1], [1, 0], color="0.6", linewidth=0.8, linestyle=":", gid="perfect privacy")
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xlabel="type I error (false-positive rate)",
            ylabel="type II error (false-negative rate)",
        )
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Plain data (JSON-ready) from which `from_dict` rebuilds the curve to the last bit.

        Returns
        -------
        dict

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(1.0).to_dict()
        {'curve': 'GaussianCurve', 'version': 1, 'mu': 1.0}
        """
        from privfit.accounting.serialization import to_dict

        return to_dict(self._this)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> TradeOffCurve:
        """Rebuild a curve from `to_dict`.

        Parameters
        ----------
        data : dict

        Returns
        -------
        TradeOffCurve

        Raises
        ------
        ValueError
            If the data do not describe a curve of a known family and version.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.TradeOffCurve.from_dict(pa.laplace(0.3).to_dict())
        LaplaceCurve(a=0.3)
        """
        from privfit.accounting.serialization import from_dict

        return from_dict(data)
