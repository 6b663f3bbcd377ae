"""Coins whose Renyi divergence is given: the border of the region that one order allows.

A coin has probabilities p under P and q under Q, ratios ``x = e^l = q / p > 1`` and ``y = (1 - q) / (1 - p) < 1``,
``w = 1 - y`` and ``p = w / (x - 1 + w)``. Its divergence of order a = b + 1 is tau when

    p phi(x) + (1 - p) phi(y) = J,    phi(r) = (r^a - 1 - a (r - 1)) / b >= 0,    J = (e^(b tau) - 1) / b

and b = 0 is the Kullback-Leibler divergence. All in logarithms and without cancellation: p may be e^-1000, and
with ``e^l = r`` and ``g(s) = (e^s - 1 - s) / s^2``

    phi = l^2 (exprel(l) - g(l) + e^l b g(b l))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.renyi import second_remainder
from privfit.accounting.roots import bisect_decreasing

__all__ = ["diagonal_loss", "log_exprel", "log_moment", "solve_width"]

Floats = NDArray[np.float64]


def log_exprel(x: Floats) -> Floats:
    """Log of (e^x - 1) / x, for x up to 700.

    Examples
    --------
    >>> float(log_exprel(np.array(0.0)))
    0.0
    """
    from scipy.special import exprel

    safe = np.clip(x, -700.0, 700.0)
    return np.where(x < -700.0, -np.log(np.maximum(-x, 1.0)), np.log(exprel(safe)))


def _log_phi(b: Floats, loss: Floats) -> Floats:
    """Log of phi at the ratio e^loss, for a = b + 1 >= 1; loss = -inf gives 0."""
    from scipy.special import exprel

    safe = np.clip(loss, -700.0, None)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        x = b * safe
        log_remainder = np.where(x < 40, np.log(second_remainder(np.minimum(x, 40.0))), x - 2 * np.log(np.abs(x)))
        small = np.minimum(safe, 40.0)
        far = safe - np.log(np.abs(safe)) + np.log1p(-1 / np.maximum(safe, 40.0))
        head = np.where(safe < 40, np.log(exprel(small) - second_remainder(small)), far)
        value = 2 * np.log(np.abs(safe)) + np.logaddexp(head, safe + np.log(b) + log_remainder)
    return np.where(loss < -700.0, 0.0, value)


def log_moment(b: Floats, tau: Floats) -> Floats:
    """Log of J = (e^(b tau) - 1) / b.

    Examples
    --------
    >>> log_moment(np.array([0.0, 1.0]), np.array(0.5)).round(6).tolist()
    [-0.693147, -0.432752]
    """
    x = b * tau
    plain = np.log(tau) + log_exprel(np.minimum(x, 700.0))
    return np.where(x < 700.0, plain, x - np.log(np.maximum(b, 1e-300)))


def solve_width(b: Floats, log_j: Floats, loss: Floats) -> Floats:
    """Log of w = 1 - y on the border of one order a = b + 1 at the log ratio `loss` (arrays broadcast).

    The root of ``log w - log(1 - phi(1 - w) / J) = log(x - 1) - log(phi(x) / J - 1)``, whose left side is convex
    and increasing: Newton's steps, kept inside a bracket. 0 (w = 1) where the order says nothing.

    Examples
    --------
    >>> w = float(np.exp(solve_width(np.array(1.0), np.log(0.5), np.array(1.0))))  # order 2: chi^2 = 0.5
    >>> x, y = np.e, 1 - w
    >>> round(float(((1 - y) * (x - 1) ** 2 + (x - 1) * (y - 1) ** 2) / (x - y)), 12)
    0.5
    """
    b, log_j, loss = (np.array(v, dtype=np.float64) for v in np.broadcast_arrays(b, log_j, loss))
    rise = _log_phi(b, loss) - log_j
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        done = ~(rise > 0)
        goal = loss + np.log(-np.expm1(-loss)) - rise - np.log(-np.expm1(-np.where(done, 1.0, rise)))
        high = np.where(done, 0.0, np.minimum(goal, -1e-16))
        low, x = np.full(high.shape, -np.inf), high
        for _ in range(80):
            w, v = np.exp(x), np.log(-np.expm1(x))
            taken = np.exp(_log_phi(b, v) - log_j)
            gap = np.where(taken < 1, x - goal - np.log1p(-np.minimum(taken, 1.0)), np.inf)
            high, low = np.where(gap >= 0, x, high), np.where(gap >= 0, low, x)
            # d phi(1 - w) / d log w = a w (1 - y^b) / b
            slope = (b + 1) * w * -v * np.exp(log_exprel(b * v) - log_j) / (1 - taken)
            newton = x - gap / (1 + slope)
            middle = np.where(np.isfinite(low), 0.5 * (low + high), high - 1.0)
            new = np.where((newton >= low) & (newton <= high), newton, middle)
            done |= np.abs(new - x) <= 4e-16 * np.maximum(np.abs(x), 1.0)
            x = np.where(done, x, new)
            if done.all():
                break
    return x


def diagonal_loss(b: Floats, log_j: Floats) -> Floats:
    """Log ratio at which the borders of both directions meet, on p = 1 - q = 1 / (1 + e^l).

    Examples
    --------
    >>> l = float(diagonal_loss(np.array([0.0]), np.log([0.3]))[0])  # Kullback-Leibler: l tanh(l/2) = 0.3
    >>> round(l * float(np.tanh(l / 2)), 12)
    0.3
    """

    def missing(loss: Floats, index: Floats) -> Floats:
        i = index.astype(int)
        value = np.logaddexp(_log_phi(b[i], loss), loss + _log_phi(b[i], -loss)) - np.logaddexp(0.0, loss)
        return log_j[i] - value

    return bisect_decreasing(missing, np.arange(b.size, dtype=float), lower=1e-300)[0]
