"""Predictions for one task and one design, as functions of the law of the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from privfit.estimators.mean import Mean
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.plan_budget import Parts
from privfit.estimators.plan_columns import predict_means, predict_quantiles
from privfit.estimators.plan_design import Design
from privfit.estimators.plan_errors import Prediction, predict_regression
from privfit.estimators.plan_needed import records_without_warning
from privfit.estimators.plan_noise import CommonNumbers
from privfit.estimators.plan_posed import POSED, predict_posed
from privfit.estimators.quantile import Quantile
from privfit.estimators.regression import IndexRegression
from privfit.mechanisms import Law, Product

__all__ = ["Predictor"]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A function from a law (None: raw data) and a number of records to the predicted covariance.

    Attributes
    ----------
    estimator : IndexRegression, Mean or Quantile
    parts : Parts
        Of the domain.
    target : str, int or None
    design : Design
    numbers : CommonNumbers
        As many as the design has records.

    Examples
    --------
    >>> Predictor.__name__
    'Predictor'
    """

    estimator: Any
    parts: Parts
    target: Any
    design: Design
    numbers: CommonNumbers

    def __call__(self, law: Law | None, n: int) -> Prediction:
        """Predict the covariance of the estimates from n records."""
        if isinstance(self.estimator, Mean):
            return predict_means(self.design, self._laws(law), self.parts.labels, n)
        model = self._model(law)
        if isinstance(self.estimator, Quantile):
            return predict_quantiles(self.estimator, self.design, model, self.numbers, n)
        if isinstance(self.estimator, POSED):
            return predict_posed(self.estimator, self.design, model, self.numbers, n)
        return predict_regression(self.estimator, self.design, model, self.numbers, n)

    def needed(self, law: Law, first: float) -> float:
        """Records from which on fits stop to warn; `first` is the formula's number, where trials start."""
        if first <= 0.0 or not isinstance(self.estimator, IndexRegression):
            return first
        width = lambda n: self(law, n).bandwidth  # noqa: E731
        return records_without_warning(self.estimator, self.design, self._model(law), first, width)

    def thinned(self, rows: int) -> Predictor:
        """Return the same for about `rows` records of the design."""
        step = max(len(self.design.x) // rows, 1)
        response = None if self.design.response is None else self.design.response[::step]
        few = replace(self.design, x=self.design.x[::step], response=response)
        numbers = CommonNumbers(self.numbers.normal[::step], self.numbers.uniform[::step])
        return replace(self, design=few, numbers=numbers)

    def _laws(self, law: Law | None) -> Mapping[Any, Any]:
        """A plain law covers the numeric columns, or the one label."""
        if law is None:
            return {}
        if isinstance(law, Product):
            return law.parts
        columns = list(self.parts.labels) if self.parts.numeric is None else self.parts.numeric.columns
        return {tuple(columns): law}

    def _model(self, law: Law | None) -> NoiseModel:
        laws = self._laws(law)
        if isinstance(self.estimator, Quantile):
            return resolve_noise(laws, self.design.columns, None, strict=False)
        used = {*self.design.columns, self.target}
        # A column that is not part of the fit may have any name, even that which means the response.
        own = {tuple(c if c in used else ("unused", c) for c in _listed(key)): law for key, law in laws.items()}
        return resolve_noise(own, self.design.columns, self.target, label=self.estimator._is_label, strict=False)


def _listed(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)
