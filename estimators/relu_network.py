r"""One-hidden-layer ReLU networks trained by the doubly random corrected loss, through the `torch` extra.

With released records X1 and fresh second draws ``X2 = X1 + S``, ``S ~ SL(delta0 Sigma)`` (zero-inflated noise), the
loss ``[l(X1) - (1 - delta0) mean_m l(X2_m)] / delta0`` has the mean of ``l(X)`` for any network (Lu, Chen & Qiu). The M
draws are new in every epoch, which averages over the second noise. The risk is a difference of two: weights are kept
small by a ridge and in ``[-bound, bound]``, and the search starts from the naive network. Estimates, no intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privfit.accounting.validation import check_choice, check_integer, check_number
from privfit.estimators.checks import check_random_state, read_columns, read_columns_and_response
from privfit.estimators.corrections import correction_terms, draw_second_noise
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.released import check_roles, read_release

__all__ = ["ReluNetworkClassifier", "ReluNetworkRegressor"]

Floats = NDArray[np.float64]


class _Network(BaseEstimator):  # type: ignore[misc]
    """What regressor and classifier share: parameters, draws and training."""

    _is_label = False

    def __init__(
        self,
        hidden: int = 32,
        *,
        noise: Any = None,
        correction: str = "dr",
        draws: int = 5,
        alpha: float = 1e-3,
        bound: float = 10.0,
        epochs: int = 60,
        batch: int = 512,
        learning_rate: float = 0.01,
        module: Callable[[int], Any] | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.hidden = hidden
        self.noise = noise
        self.correction = correction
        self.draws = draws
        self.alpha = alpha
        self.bound = bound
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.module = module
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on released columns X and response y.

        Parameters
        ----------
        X : array_like, shape (n, d)
        y : array_like, shape (n,)

        Raises
        ------
        ModuleNotFoundError
            If torch is not installed.
        CapabilityError
            If the noise is not one zero-inflated law, and `correction` is "dr".
        """
        torch = _torch()
        self._check()
        X, y = read_columns_and_response(self, X, y, label=self._is_label)
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        return self._train(torch, X, y, resolve_noise(self.noise, names, "y", label=self._is_label))

    def fit_release(self, release: Any, target: Any = None, features: Any = None) -> Self:
        """Train on a release, whose law replaces ``noise=``.

        Parameters
        ----------
        release : Release
        target : str or int
        features : str, int or sequence of these, optional
        """
        torch = _torch()
        self._check()
        if target is None:
            raise TypeError(f"{type(self).__name__}.fit_release needs target=, the column to model.")
        frame, response, names, laws = read_release(release, target, features)
        check_roles(target, names, laws, label=self._is_label)
        X, y = read_columns_and_response(self, frame, response, label=self._is_label)
        return self._train(torch, X, y, resolve_noise(laws, names, target, label=self._is_label, strict=False))

    def _check(self) -> None:
        for name, low, high in (("hidden", 1, 4096), ("draws", 1, 1000), ("epochs", 1, 100_000), ("batch", 1, None)):
            check_integer(name, getattr(self, name), low, high)
        for name in ("bound", "learning_rate"):
            check_number(name, getattr(self, name), 0.0, low_open=True)
        check_number("alpha", self.alpha, 0.0)
        check_choice("correction", self.correction, ("dr", "naive"), hint="A network has no closed form.")
        check_random_state(self.random_state)

    def _train(self, torch: Any, X: Floats, y: Any, model: NoiseModel) -> Self:
        self.noise_ = model
        answer = self._read_response(y, model)
        corrected = self.correction == "dr" and bool(model.parts)
        weights = [term.weight for term in correction_terms("dr" if corrected else "naive", model.parts)]
        self._centre, self._scale = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        rng = np.random.default_rng(self.random_state)
        torch.manual_seed(int(rng.integers(2**31)))
        build = self.module or (lambda d: _one_layer(torch, d, int(self.hidden)))
        network = build(X.shape[1]).double()
        naive = min(max(self.epochs // 3, 1), self.epochs) if corrected else self.epochs
        path = [self._epoch(torch, network, X, answer, [1.0], rng, k / naive) for k in range(naive)]
        if corrected:
            rest = max(self.epochs - naive, 1)
            path = [self._epoch(torch, network, X, answer, weights, rng, k / rest) for k in range(rest)]
        self.module_, self.n_iter_ = network, int(self.epochs)
        tail = max(len(path) // 10, 1)
        last, before = np.mean(path[-tail:]), np.mean(path[-2 * tail : -tail] or path[-tail:])
        spread = 3.0 * float(np.std(path[-2 * tail :])) / np.sqrt(tail)  # every epoch has its own second draws
        self.converged_ = bool(np.isfinite(last) and abs(last - before) <= 0.05 * (abs(before) + 0.1) + spread)
        edge = max(float(p.detach().abs().max()) for p in network.parameters()) >= 0.999 * self.bound
        self.converged_ = self.converged_ and not edge
        self.diagnostics_ = {"risk": np.array(path), "at_bound": edge, "corrected": corrected}
        return self

    def _epoch(
        self, torch: Any, network: Any, X: Floats, answer: Floats, weights: list[float], rng: Any, share: float
    ) -> float:
        """One pass with new second draws; returns the mean corrected loss."""
        n = len(X)
        tables = [(X, answer)]
        for _ in range(self.draws if len(weights) > 1 else 0):
            noise = draw_second_noise(self.noise_.parts, n, rng)
            tables.append((X + noise[:-1].T, answer + noise[-1] / self._unit))
        own = [weights[0], *[weights[-1] / self.draws] * (len(tables) - 1)]
        ready = [(torch.from_numpy((x - self._centre) / self._scale), torch.from_numpy(a)) for x, a in tables]
        rate = self.learning_rate * 0.5 * (1.0 + np.cos(np.pi * share))
        if share == 0.0:
            self._optimiser = torch.optim.Adam(network.parameters(), weight_decay=self.alpha)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        order, total = torch.from_numpy(rng.permutation(n)), 0.0
        for start in range(0, n, self.batch):
            rows = order[start : start + self.batch]
            inputs = torch.cat([x[rows] for x, _ in ready])
            parts = network(inputs).reshape(len(ready), -1)
            loss = sum(w * self._loss(torch, u, a[rows]).mean() for w, u, (_, a) in zip(own, parts, ready, strict=True))
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.clamp_(-self.bound, self.bound)
            total += float(loss.detach()) * len(rows)
        return total / n

    def _output(self, X: Any) -> Floats:
        check_is_fitted(self)
        torch = _torch()
        X = read_columns(self, X, reset=False)
        with torch.no_grad():
            return np.asarray(
                self.module_(torch.from_numpy((X - self._centre) / self._scale)).reshape(-1).numpy(), float
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_optimiser"}

    _unit = 1.0

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        raise NotImplementedError

    def _loss(self, torch: Any, u: Any, answer: Any) -> Any:
        raise NotImplementedError


class ReluNetworkRegressor(RegressorMixin, _Network):  # type: ignore[misc]
    """Network regression with squared loss, corrected for zero-inflated noise of columns and response.

    Parameters
    ----------
    hidden : int
        Units of the hidden layer.
    noise : Law, Product, mapping or None
        As for `LinearRegression`: one `ZeroInflatedLaplace` law, or none.
    correction : {"dr", "naive"}
    draws : int
        Second draws M per record and epoch.
    alpha : float
        Weight decay.
    bound : float
        Largest absolute weight, in standardised columns.
    epochs, batch : int
    learning_rate : float
        Of Adam, falling to 0 along a cosine.
    module : callable, optional
        ``module(d)`` returns another torch network of d inputs and one output.
    random_state : int, Generator or None

    Attributes
    ----------
    module_ : torch.nn.Module
    converged_ : bool
        The corrected risk settled, and no weight is at the bound.
    diagnostics_ : dict
        ``risk`` per epoch, ``at_bound``, ``corrected``.

    Examples
    --------
    >>> ReluNetworkRegressor(hidden=8).get_params()["hidden"]
    8
    """

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        values = np.asarray(y, float)
        self._level, self._unit = float(values.mean()), float(values.std()) or 1.0
        return (values - self._level) / self._unit

    def _loss(self, torch: Any, u: Any, answer: Any) -> Any:
        return (answer - u) ** 2

    def predict(self, X: Any) -> Floats:
        """Fitted means of records without noise, shape (n,)."""
        return self._level + self._unit * self._output(X)


class ReluNetworkClassifier(ClassifierMixin, _Network):  # type: ignore[misc]
    """Network for two classes with logistic loss, corrected for zero-inflated columns and a randomised label.

    Parameters
    ----------
    hidden, noise, correction, draws, alpha, bound, epochs, batch, learning_rate, module, random_state
        As for `ReluNetworkRegressor`; the label may have a `RandomizedResponse` law under "y".

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    module_, converged_, diagnostics_
        As for `ReluNetworkRegressor`.

    Examples
    --------
    >>> ReluNetworkClassifier(draws=3).get_params()["draws"]
    3
    """

    _is_label = True

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        self.classes_, labels = np.unique(np.asarray(y), return_inverse=True)
        if self.classes_.size != 2:
            raise ValueError(f"y must have two classes, got {self.classes_.size}. Use LogisticRegression for more.")
        keep = 1.0 if self.correction == "naive" else model.keep
        return np.asarray((labels - (1.0 - keep)) / (2.0 * keep - 1.0), float)

    def _loss(self, torch: Any, u: Any, answer: Any) -> Any:
        return torch.nn.functional.softplus(u) - answer * u

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the two classes for records without noise, shape (n, 2)."""
        from scipy.special import expit

        u = self._output(X)
        return np.stack([expit(-u), expit(u)], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class, shape (n,)."""
        return np.asarray(self.classes_[(self._output(X) > 0).astype(int)])


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'networks need the package torch. Install it: pip install "privfit[torch]". LogisticRegression and '
            "LinearRegression need no more than privfit."
        ) from None
    return torch


def _one_layer(torch: Any, inputs: int, hidden: int) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1))
