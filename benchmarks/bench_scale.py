"""Fits without noise beside scikit-learn and statsmodels on the same raw data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Row, duration, installed, medians, row

from privfit.estimators import LinearRegression, LogisticRegression, QuantileRegression

DIM = 10
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


def _data(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, DIM))
    index = x @ np.linspace(-1, 1, DIM)
    return x, index + rng.normal(size=n), (rng.random(n) < 1 / (1 + np.exp(-index))).astype(int)


def _rows(
    what: str, fits: Callable[..., tuple[Any, dict[str, Any]]], goal: float, sizes: tuple[int, ...], quick: bool
) -> list[Row]:
    out = []
    for n in (2_000,) if quick else sizes:
        own, peers = fits(*_data(n))
        ours, *others = medians(own, *peers.values(), quick=quick, repeats=3, at_least=0.0)
        for name, peer in zip(peers, others, strict=True):
            text = f"{what} on raw data, n = {n:,}, d = {DIM}, with standard errors"
            out.append(
                Row(
                    text,
                    duration(ours),
                    f"{name}: {duration(peer)}",
                    ours / peer,
                    f"ratio at most {goal:g}",
                    ours <= goal * peer,
                )
            )
    return out


@row
def linear_fits(quick: bool) -> list[Row]:
    from sklearn.linear_model import LinearRegression as Peer

    def fits(x: Any, y: Any, _: Any) -> tuple[Any, dict[str, Any]]:
        return lambda: LinearRegression().fit(x, y), {"scikit-learn": lambda: Peer().fit(x, y)}

    return _rows("linear regression", fits, 1.5, SIZES, quick)


@row
def logistic_fits(quick: bool) -> list[Row]:
    from sklearn.linear_model import LogisticRegression as Peer

    def fits(x: Any, _: Any, label: Any) -> tuple[Any, dict[str, Any]]:
        return lambda: LogisticRegression().fit(x, label), {"scikit-learn": lambda: Peer(C=np.inf).fit(x, label)}

    return _rows("logistic regression", fits, 3.0, SIZES, quick)


@row
def quantile_fits(quick: bool) -> list[Row]:
    from sklearn.linear_model import QuantileRegressor

    def fits(x: Any, y: Any, _: Any) -> tuple[Any, dict[str, Any]]:
        peers: dict[str, Any] = {}
        if len(x) <= 10_000:
            peers["scikit-learn"] = lambda: QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs").fit(x, y)
        if installed("statsmodels"):
            from statsmodels.regression.quantile_regression import QuantReg

            full = np.c_[np.ones(len(x)), x]
            peers["statsmodels"] = lambda: QuantReg(y, full).fit(q=0.5)
        return lambda: QuantileRegression(0.5).fit(x, y), peers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _rows("median regression", fits, 1.0, SIZES[:3], quick)
