"""What every fitted model reports: standard errors, tests, intervals, a summary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.estimators.advice import diagnosis, trusted
from privfit.estimators.bands import simultaneous_intervals
from privfit.estimators.contrasts import check_contrasts, contrast_rows
from privfit.estimators.diagnostics import needed_text
from privfit.estimators.efficiency import Efficiency
from privfit.estimators.inference import confidence_intervals, full_rank, tail_probability
from privfit.estimators.regions import ConfidenceRegion
from privfit.estimators.summary import coefficient_table, cost_table, summary_text

__all__ = ["QUANTILE_SMOOTHS", "ResultsMixin"]

Floats = NDArray[np.float64]
QUANTILE_SMOOTHS = ("Check loss", "units of the response", "the quantile smoothed on that scale")
"""What is smoothed in a quantile regression, in which units, and what is then estimated."""


class ResultsMixin:
    """Inference methods on `params_` and `cov_params_` (intercept first, then coefficients).

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.estimators import Mean
    >>> Mean().fit(np.arange(10.0)[:, None]).conf_int(0.9).round(2)
    array([[2.93, 6.07]])
    """

    params_: Floats
    cov_params_: Floats
    efficiency_: Efficiency
    converged_: bool
    diagnostics_: dict[str, Any]
    noise_: Any
    _names: list[str]
    _n_records: int
    _groups: int | None = None
    _smooths = ("Loss", "units of its index", "the minimiser of the smoothed loss")

    @property
    def bse_(self) -> Floats:
        """Standard errors, intercept first, shape (p,)."""
        check_is_fitted(self)
        return np.asarray(np.sqrt(np.diag(self.cov_params_)), float)

    @property
    def zvalues_(self) -> Floats:
        """Estimates over standard errors (0 where the standard error is infinite), shape (p,)."""
        errors = self.bse_
        safe = np.where(errors > 0, errors, 1.0)
        z = np.where(errors > 0, self.params_ / safe, np.copysign(np.inf, self.params_))
        return np.where((errors == 0) & (self.params_ == 0), 0.0, z)

    @property
    def pvalues_(self) -> Floats:
        """Two-sided p-values (normal; Student's t with clusters), shape (p,)."""
        return np.asarray(tail_probability(self.zvalues_**2, 1, self._freedom), float)

    @property
    def _freedom(self) -> float:
        """Degrees of freedom of the covariance."""
        return np.inf if self._groups is None else float(self._groups - 1)

    def conf_int(self, level: float = 0.95) -> Floats:
        """Confidence intervals, one for each coefficient alone: normal; Student's t with clusters.

        Parameters
        ----------
        level : float
            Coverage in (0, 1).

        Returns
        -------
        ndarray, shape (p, 2)
            Intercept first; infinite where the data do not identify a coefficient, or the search ran away
            (``diagnostics_["runaway"]``). Where `summary` hides intervals for another reason (the curvature is too
            uncertain, a stabilising ridge), they are computed here all the same.
        """
        errors = self.bse_
        return confidence_intervals(self.params_, errors, level, self._freedom)

    def simultaneous_intervals(
        self, level: float = 0.95, *, contrasts: Any = None, draws: int = 20_000, random_state: Any = 0
    ) -> Floats:
        """Intervals that hold for all coefficients (or contrasts) at once, from the largest of their t statistics.

        Parameters
        ----------
        level : float
            Coverage of all together, in (0, 1).
        contrasts : names, or array_like of shape (m, p), optional
            Coefficients, or linear functions of `params_`; each coefficient if left out.
        draws : int
            Simulations of the joint normal law (t with clusters), see `bands.sup_t`.
        random_state : int, Generator or None

        Returns
        -------
        ndarray, shape (m, 2)

        Raises
        ------
        ValueError
            If the shape is wrong, or no function has a finite standard error.
        """
        centre, covariance = self._functions(contrasts)
        return simultaneous_intervals(centre, covariance, level, draws, random_state, self._freedom)

    def confidence_region(self, contrasts: Any = None, level: float = 0.95) -> ConfidenceRegion:
        """Ellipsoid of the values that the Wald test does not reject.

        Parameters
        ----------
        contrasts : names, or array_like of shape (m, p), optional
            Coefficients, or linear functions of `params_`, full row rank; each coefficient if left out.
        level : float
            Coverage in (0, 1).

        Returns
        -------
        ConfidenceRegion
            With `contains`, `volume` and, for two functions, `boundary`.

        Raises
        ------
        ValueError
            If the shape is wrong, the rows depend on each other, or a standard error is infinite.
        """
        centre, covariance = self._functions(contrasts)
        return ConfidenceRegion.of(centre, covariance, level, self._freedom)

    def _functions(self, contrasts: Any) -> tuple[Floats, Floats]:
        """Value and covariance of linear functions of the parameters."""
        check_is_fitted(self)
        if contrasts is None:
            return self.params_, self.cov_params_
        rows = contrast_rows(contrasts, self._names)
        lost = ~np.isfinite(self.bse_)
        finite = np.where(lost[:, None] | lost, 0.0, self.cov_params_)
        covariance = rows @ finite @ rows.T
        reached = np.flatnonzero((rows[:, lost] != 0.0).any(axis=1))
        covariance[reached, :] = covariance[:, reached] = 0.0
        covariance[reached, reached] = np.inf
        return rows @ self.params_, covariance

    def wald_test(self, contrasts: Any, values: Any = 0.0) -> tuple[float, float]:
        """Wald test of ``contrasts @ params_ = values``.

        Parameters
        ----------
        contrasts : names, or array_like of shape (m, p)
            Coefficients, or rows of linear hypotheses; full row rank.
        values : float or array_like, shape (m,)

        Returns
        -------
        statistic, p_value : float
            Chi-squared with m degrees of freedom; with G clusters m times F with (m, G - 1).

        Raises
        ------
        ValueError
            If the shape is wrong, the rows depend on each other, or a standard error is infinite.
        """
        check_is_fitted(self)
        rows, wanted = check_contrasts(contrasts, values, self._names)
        centre, covariance = self._functions(rows)
        if not np.isfinite(covariance).all():
            raise ValueError("contrasts must involve identified coefficients only: a standard error is infinite.")
        if not full_rank(covariance):
            raise ValueError("contrasts must have a covariance of full rank, got a singular one. Drop some rows.")
        gap = centre - wanted
        statistic = float(gap @ np.linalg.solve(covariance, gap))
        return statistic, float(tail_probability(statistic, len(rows), self._freedom))

    def summary(self, level: float = 0.95) -> str:
        """Return estimates, standard errors, tests, intervals and, for noised data, the cost of privacy as text.

        A fit that warns of too few records shows "-" for tests and intervals; `conf_int` still gives the numbers.

        Parameters
        ----------
        level : float
            Coverage of the intervals.

        Returns
        -------
        str
        """
        interval = self.conf_int(level)
        columns = (self.params_, self.bse_, self.zvalues_, self.pvalues_, interval)
        found = self.diagnostics_
        fits = found.get("quantiles") or found.get("columns") or [found]
        shown = np.repeat([trusted(own) for own in fits], len(self._names) // len(fits))
        table = coefficient_table(self._names, *columns, level, shown, student=self._groups is not None)
        return summary_text(f"{type(self).__name__} on released data", self._facts(), table, self._notes())

    def diagnose(self) -> str:
        """Return whether the records suffice for the noise, why not, and what to do next, as text.

        The numbers behind it are in `diagnostics_`; `estimators.advice.KEYS` says what each of them means.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return diagnosis(type(self).__name__, self.diagnostics_ | {"clusters": self._groups}, self._n_records)

    def efficiency_report(self) -> str:
        """Return standard errors on the release beside those that the raw data would give, as text.

        "worth" is the share of raw records that would estimate a coefficient as well: 1 / factor^2. The raw-data
        numbers are estimates from the release alone; the text says how.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        cost = self.efficiency_
        table = cost_table(self._names, self.bse_, cost.factors)
        notes = [str(cost)]
        if self.noise_.noisy and np.isfinite(cost.overall):
            notes.append(f"Raw-data standard errors are estimates from the release. Their scores: {cost.assumption}.")
            if cost.factors.size > 1:
                notes.append(
                    "The joint factor is a geometric mean over directions. It counts those without noise, too, so it "
                    "may be below every factor in the table."
                )
        facts = [fact for fact in self._facts() if fact[0] in ("Records", "Noise", "")]
        return summary_text(f"Cost of privacy, {type(self).__name__}", facts, table, notes)

    def _facts(self) -> list[tuple[str, str]]:
        laws = [f"{law} on {columns}" for columns, law in self.noise_.laws] or ["none"]
        facts = [("Records", f"{self._n_records:,}")]
        facts += [("Noise" if j == 0 else "", text) for j, text in enumerate(laws)]
        facts += [("Correction", str(getattr(self, "correction", "exact")))]
        facts += [("Converged", "yes" if self.converged_ else "NO")]
        if self.noise_.noisy:
            facts += [("Cost of privacy", str(self.efficiency_))]
        return facts

    def _notes(self) -> list[str]:
        found = self.diagnostics_
        notes = ["Standard errors: sandwich, from the release alone."]
        if self._groups is not None:
            notes = [
                f"Standard errors: cluster-robust sandwich over {self._groups:,} clusters, from the release alone; "
                f"t with {self._groups - 1:,} degrees of freedom."
            ]
        if self.noise_.noisy and np.isfinite(self.efficiency_.overall):
            notes.append(f"Raw-data scores: {self.efficiency_.assumption}.")
        if found.get("bandwidth") is not None:
            what, units, target = self._smooths
            notes.append(
                f"{what} smoothed with bandwidth {found['bandwidth']:.4g} ({units}): the target is {target}. Compare "
                "with raw data at the same bandwidth."
            )
        if found.get("bandwidth_too_wide") and not found.keys() & {"columns", "quantiles"}:
            notes.append("The bandwidth exceeds half the response's range: this is no longer about that quantile.")
        notes += [f"{text[0].upper()}{text[1:]}." for text in found.get("cautions", ())]
        if found.get("stabilised"):
            notes.append(
                "Stabilised by a ridge scaled to the noise: estimates shrink. Intervals (conf_int) are conditional on "
                "the ridge, so they and the tests are not shown; do not test with this fit."
            )
        elif found.get("penalised"):
            notes.append("Penalised fit: intervals are conditional on the penalty.")
        if found.get("n_needed"):
            text = needed_text(found["n_needed"], found.get("n_needed_is_bound", False))
            notes.append(f"TOO FEW RECORDS for this noise, which needs {text}.")
            notes.append(
                "Standard errors are not to be trusted, so tests and intervals are not shown; see diagnose()."
                + ("" if found.get("runaway") else " bse_ and conf_int() still compute them.")
            )
        if getattr(self, "correction", "") == "naive" and self.noise_.noisy:
            notes.append("Naive fit: the noise is ignored, so estimates are biased and intervals do not cover.")
        return notes
