"""Estimation rows: the exact correction on released data against scikit-learn on the raw data."""

from __future__ import annotations

import warnings

import numpy as np
from harness import Row, duration, medians, row

from privfit.estimators import LogisticRegression
from privfit.mechanisms import Box, SymmetricLaplace, ZeroInflatedLaplace, release

DIM = 6
GOAL = 3.0


@row
def exact_logistic_fits(quick: bool) -> list[Row]:
    from sklearn.linear_model import LogisticRegression as Peer

    size = 4_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (size, DIM))
    y = (rng.random(size) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(int)
    box = Box(dict.fromkeys(range(DIM), (-1, 1)))
    laws = [ZeroInflatedLaplace(1.0, 0.2), SymmetricLaplace(0.6, shape=4)]
    frames = [release(x, law, box).frame for law in laws]
    fits = [
        lambda law=law, frame=frame: LogisticRegression(noise=law).fit(frame, y)
        for law, frame in zip(laws, frames, strict=True)
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore" if quick else "default", category=UserWarning)
        *ours, peer = medians(*fits, lambda: Peer(C=np.inf).fit(x, y), quick=quick, repeats=3, at_least=0.0)
        error = [np.abs(fit().coef_ - 1).max() for fit in fits]
        raw = np.abs(Peer(C=np.inf).fit(x, y).coef_ - 1).max()
    return [
        Row(
            f"exact logistic fit, n = {size:,}, d = {DIM}, {law!r}",
            f"{duration(seconds)} (coefficients within {own:.3f})",
            f"scikit-learn on raw data: {duration(peer)} (within {raw:.3f})",
            seconds / peer,
            "ratio at most 3",
            seconds <= GOAL * peer,
        )
        for law, seconds, own in zip(laws, ours, error, strict=True)
    ]
