"""Composition: several mechanisms run independently on the same record.

The privacy loss of a product is the sum of the losses. Exact cases: Gaussian curves add ``mu^2``; zero
inflation and sampler slack are peeled off (``1 - prod(1 - delta0_i)``, ``sum eta_i``); atoms add; and a curve
with atoms (l_i, p_i, q_i) composes with any other curve X as the mixture

    alpha(t) = sum_i p_i alpha_X(t - l_i),      delta(eps) = sum_i q_i delta_X(eps - l_i).

Two or more other curves are first replaced by their envelopes on a lattice of losses: the tightest
pessimistic discretisation (connect the dots; Doroshenko et al. 2022), convolved by FFT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import reduce, singledispatch

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Precision, TradeOffCurve
from privfit.accounting.discrete import DiscreteCurve, from_atoms, from_profile
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.validation import check_integer
from privfit.accounting.wrappers import SlackCurve, ZeroInflatedCurve, shifted, zero_inflated

__all__ = ["ComposedCurve", "compose", "self_compose"]

Floats = NDArray[np.float64]
LATTICE = 4001  # points of the lattice of one curve
TAIL = 1e-14  # mass that may move to an infinite loss, for every discretised curve
MAX_ATOMS = 4096


@dataclass(frozen=True)
class ComposedCurve(TradeOffCurve):
    """A curve composed with atoms of privacy loss (see `compose`)."""

    base: TradeOffCurve
    atoms: DiscreteCurve

    @property
    def precision(self) -> Precision:
        """That of the parts together."""
        base = self.base.precision
        return Precision(base.relative + 1e-13, base.absolute)

    @property
    def max_loss(self) -> float:
        """Sum of the largest losses."""
        return self.base.max_loss + self.atoms.max_loss

    @property
    def infinite_mass(self) -> float:
        """One minus the product of the masses that do not disclose."""
        return 1 - (1 - self.base.infinite_mass) * (1 - self.atoms.infinite_mass)

    def _mix(self, t: Floats, which: str) -> Floats:
        loss, p, q = (np.asarray(v) for v in (self.atoms.loss, self.atoms.p, self.atoms.q))
        finite = np.isfinite(loss)
        flat = t.ravel()
        total = np.empty(flat.shape)
        block = max(1, 2**20 // max(1, int(finite.sum())))
        for i in range(0, flat.size, block):
            shifted_t = flat[i : i + block, None] - loss[finite]
            if which == "delta":
                total[i : i + block] = self.base._delta(shifted_t) @ q[finite]
            else:
                alpha, beta = self.base._error_rates(shifted_t)
                total[i : i + block] = alpha @ p[finite] if which == "alpha" else beta @ q[finite]
        return total.reshape(t.shape)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        alpha, beta = self._mix(log_ratio, "alpha"), self._mix(log_ratio, "beta")
        # a loss of -inf under P never exceeds t; a loss of +inf under Q always does, unless t is infinite
        return alpha, np.where(np.isposinf(log_ratio), 1.0, beta)

    def _delta(self, epsilon: Floats) -> Floats:
        certain = self.atoms.infinite_mass
        return np.where(np.isposinf(epsilon), self.infinite_mass, certain + self._mix(epsilon, "delta"))


def compose(*curves: TradeOffCurve) -> TradeOffCurve:
    """Curve of several mechanisms run independently on the same record.

    Parameters
    ----------
    *curves : TradeOffCurve
        At least one.

    Returns
    -------
    TradeOffCurve
        Exact with at most one part that is neither Gaussian nor discrete; otherwise a certified lower bound
        of the trade-off function.

    Raises
    ------
    TypeError, ValueError
        If something is not a curve, or there is none.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> both = compose(pa.gaussian(1.0), pa.randomized_response(0.5))
    >>> pa.gaussian(1.0).delta(1.0) < both.delta(1.0) < pa.gaussian(1.0).delta(0.5)
    True
    """
    if not curves:
        raise ValueError("compose needs at least one curve; pass the curves of the mechanisms.")
    for curve in curves:
        if not isinstance(curve, TradeOffCurve):
            raise TypeError(f"compose takes TradeOffCurve objects, got {type(curve).__name__}.")
    parts = _Parts()
    for curve in curves:
        _sort_into(curve, parts)
    others = parts.others + ([GaussianCurve(math.sqrt(parts.mu2))] if parts.mu2 else [])
    while len(others) > 1:
        # the cheapest curve to evaluate stays exact: a Gaussian if there is one (it is last)
        parts.atoms.append(discretise(others.pop(0)))
    result: TradeOffCurve
    if parts.atoms:
        atoms = reduce(_add_atoms, parts.atoms)
        result = ComposedCurve(others[0], atoms) if others else atoms
    else:
        result = others[0]
    return shifted(zero_inflated(result, 1 - parts.survival) if parts.survival < 1 else result, parts.eta)


@dataclass
class _Parts:
    """What is left when the exact rules have been applied to every curve."""

    eta: float = 0.0
    survival: float = 1.0
    mu2: float = 0.0
    atoms: list[DiscreteCurve] = field(default_factory=list)
    others: list[TradeOffCurve] = field(default_factory=list)


@singledispatch
def _sort_into(curve: TradeOffCurve, parts: _Parts) -> None:
    parts.others.append(curve)


@_sort_into.register
def _(curve: SlackCurve, parts: _Parts) -> None:
    parts.eta += curve.eta
    _sort_into(curve.base, parts)


@_sort_into.register
def _(curve: ZeroInflatedCurve, parts: _Parts) -> None:
    parts.survival *= 1 - curve.delta0
    _sort_into(curve.base, parts)


@_sort_into.register
def _(curve: ComposedCurve, parts: _Parts) -> None:
    _sort_into(curve.base, parts)
    parts.atoms.append(curve.atoms)


@_sort_into.register
def _(curve: GaussianCurve, parts: _Parts) -> None:
    parts.mu2 += curve.mu**2


@_sort_into.register
def _(curve: DiscreteCurve, parts: _Parts) -> None:
    parts.atoms.append(curve)


def self_compose(curve: TradeOffCurve, k: int) -> TradeOffCurve:
    """Curve of `k` independent runs of one mechanism.

    Parameters
    ----------
    curve : TradeOffCurve
    k : int
        At least 1.

    Returns
    -------
    TradeOffCurve

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> self_compose(pa.randomized_response(0.1), 3).max_loss
    0.30000000000000004
    """
    count = check_integer("k", k, 1)
    if isinstance(curve, GaussianCurve):
        return GaussianCurve(curve.mu * math.sqrt(count))
    result: TradeOffCurve | None = None
    square = curve
    while count:
        if count % 2:
            result = square if result is None else compose(result, square)
        count //= 2
        if count:
            square = compose(square, square)
    assert result is not None
    return result


def discretise(curve: TradeOffCurve, points: int = LATTICE) -> DiscreteCurve:
    """Tightest pessimistic curve with losses on a uniform lattice: the envelope of the profile there.

    The loss beyond the lattice, where delta is at most 1e-14, counts as infinite.

    Parameters
    ----------
    curve : TradeOffCurve
    points : int
        Size of the lattice on the positive side.

    Returns
    -------
    DiscreteCurve

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> rough = discretise(pa.laplace(1.0), 50)
    >>> 0 <= rough.delta(0.333) - pa.laplace(1.0).delta(0.333) < 1e-4
    True
    """
    top = curve.max_loss
    if not math.isfinite(top):
        top = float(curve.epsilon(max(TAIL, curve.infinite_mass * (1 + 1e-9) + TAIL)))
    lattice = np.linspace(0.0, top, points)
    return _profile_atoms(lattice, np.asarray(curve.delta(lattice)))


def _profile_atoms(e: Floats, delta: Floats) -> DiscreteCurve:
    """Atoms at +-e whose profile interpolates `delta` linearly in e^eps (and is symmetric)."""
    # between lattice points delta(eps) = 1 - beta - e^eps alpha with constant alpha: its slope in e^eps
    step = np.expm1(np.diff(e))
    scaled = np.append((delta[:-1] - delta[1:]) / step, 0.0)  # e^(e_j) alpha on (e_j, e_j+1)
    grow = np.exp(np.diff(e))
    # mass of Q at e_j: e^(e_j) times the drop of alpha there
    q_positive = np.maximum(np.append(0.0, scaled[:-1] * grow) - scaled, 0.0)[1:]
    p_positive = q_positive * np.exp(-e[1:])
    certain = float(delta[-1])
    middle = max(1.0 - certain - q_positive.sum() - p_positive.sum(), 0.0)
    loss = np.concatenate([[-np.inf], -e[:0:-1], [0.0], e[1:], [np.inf]])
    q = np.concatenate([[0.0], p_positive[::-1], [middle], q_positive, [certain]])
    p = np.concatenate([[certain], q_positive[::-1], [middle], p_positive, [0.0]])
    return from_atoms(loss, p, q)


def _add_atoms(a: DiscreteCurve, b: DiscreteCurve) -> DiscreteCurve:
    """Atoms of the sum of two losses; if there are too many they move up to a lattice (pessimistic)."""
    finite_a, finite_b = np.isfinite(a.loss), np.isfinite(b.loss)
    la, qa, pa = (np.asarray(v)[finite_a] for v in (a.loss, a.q, a.p))
    lb, qb, pb = (np.asarray(v)[finite_b] for v in (b.loss, b.q, b.p))
    certain = 1 - (1 - a.infinite_mass) * (1 - b.infinite_mass)
    if la.size * lb.size <= MAX_ATOMS:
        loss = np.add.outer(la, lb).ravel()
        return _with_ends(loss, np.outer(pa, pb).ravel(), np.outer(qa, qb).ravel(), certain)
    span = max(np.ptp(la), np.ptp(lb))
    h = span / (2 * LATTICE)
    ga, gb = _on_lattice(la, qa, h), _on_lattice(lb, qb, h)
    from scipy.signal import fftconvolve

    q = np.maximum(fftconvolve(ga[1], gb[1]), 0.0)
    loss = (ga[0] + gb[0] + np.arange(q.size)) * h
    # rounding of the FFT: at most a few ulp of the largest mass for every atom, counted as disclosed
    error = 4 * np.finfo(float).eps * math.sqrt(q.size) * float(np.sqrt((ga[1] ** 2).sum() * (gb[1] ** 2).sum()))
    q = np.where(q > error, q, 0.0)
    result = _thin(loss, q, certain + error * q.size)
    return result if certain > 0 else _keep_pure(result, a.max_loss + b.max_loss)


def _on_lattice(loss: Floats, q: Floats, h: float) -> tuple[int, Floats]:
    """Split every atom over its two lattice neighbours, keeping its mass under P and under Q.

    That is the pessimistic move: the curve of the split atoms lies below the curve of the atom.
    """
    low = np.floor(loss / h + 1e-12).astype(np.int64)
    rest = np.maximum(loss - low * h, 0.0)
    # q = q1 + q2 and q e^-l = q1 e^-(l - rest) + q2 e^-(l - rest + h)
    upper = np.clip(-np.expm1(-rest) / -math.expm1(-h), 0.0, 1.0) if h > 0 else np.zeros_like(rest)
    first = int(low.min())
    size = int(low.max()) - first + 2
    grid = np.zeros(size)
    grid += np.bincount(low - first, q * (1 - upper), minlength=size)
    grid += np.bincount(low - first + 1, q * upper, minlength=size)
    return first, grid


def _thin(loss: Floats, q: Floats, certain: float) -> DiscreteCurve:
    """Drop the far ends of a lattice: the top counts as disclosed, the bottom moves up."""
    above = np.cumsum(q[::-1])[::-1]
    last = int(np.flatnonzero(above > TAIL)[-1])
    certain += float(above[last + 1]) if last + 1 < q.size else 0.0
    p = q * np.exp(-loss)
    first = int(np.argmax(np.cumsum(p * (loss < 0))[: last + 1] > 1e-16)) if (loss < 0).any() else 0
    below = float(q[:first].sum())
    q, loss = q[first : last + 1].copy(), loss[first : last + 1]
    q[0] += below
    return _with_ends(loss, q * np.exp(-loss), q, min(certain, 1.0))


def _keep_pure(curve: DiscreteCurve, top: float) -> DiscreteCurve:
    """Use that delta vanishes at the sum of the largest losses, which lattice and rounding have lost."""
    if top > 700.0:
        return curve
    losses = np.asarray(curve.loss)
    e = np.append(losses[(losses >= 0) & (losses < top * (1 - 1e-9))], top)
    return from_profile(e, np.append(curve._delta(e[:-1]), 0.0))


def _with_ends(loss: Floats, p: Floats, q: Floats, certain: float) -> DiscreteCurve:
    """Add the infinite atoms that complete P and Q to one."""
    q = q * ((1 - certain) / q.sum())
    scale = max(1.0, p.sum())
    p = p / scale
    return from_atoms(
        np.concatenate([[-np.inf], loss, [np.inf]]),
        np.concatenate([[max(1 - p.sum(), 0.0)], p, [0.0]]),
        np.concatenate([[0.0], q, [certain]]),
    )
