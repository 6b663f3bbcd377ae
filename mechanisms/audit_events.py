r"""Events of a score against a claimed trade-off curve.

A score s of outputs is any function chosen before they are drawn; larger values speak for the second input. The
event {s > t} is a test: alpha = P[s > t] and beta = Q[s <= t] obey beta >= f(alpha) whatever s and t are, and
f decreases, so with probability 1 - 2 level

    1 - (lower limit of Q[s > t])  >=  beta  >=  f(alpha)  >=  f(upper limit of P[s > t]).

An alarm says that this fails. In the other direction the same holds for {s < t}, the inputs exchanged, and the
reversed curve. A poor score or threshold misses breaches, it never makes a false alarm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.audit_report import AuditPoint, AuditTest
from privfit.mechanisms.audit_statistics import lower_limit, upper_limit

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve

__all__ = ["THRESHOLDS", "event_tests", "thresholds"]

Floats = NDArray[np.float64]

THRESHOLDS = 12
_SPREAD = (0.003, 0.02, 0.08, 0.2, 0.35, 0.5, 0.65, 0.8, 0.92, 0.98)
MEANING = "the outputs tell the two inputs apart better than the claimed curve allows"


def thresholds(p: Floats, q: Floats, claimed: TradeOffCurve, samples: int) -> list[float]:
    """Return 12 thresholds for {s > t}, from scores of a pilot.

    Ten quantiles of the scores under Q; the quantile whose event speaks most against the curve if `samples` outputs
    behave as the pilot does; and certain disclosure, {s = inf}, or the largest score seen under P.

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> x = np.linspace(-2, 2, 500)
    >>> len(thresholds(x, x + 1, gaussian(1.0), 1000))
    12
    """
    finite = q[np.isfinite(q)]
    finite = finite if finite.size else np.zeros(1)
    # Values that were seen, so that events of a score with few values are not cut differently by rounding.
    spread = np.quantile(finite, _SPREAD, method="lower")
    tried = np.unique(np.quantile(np.concatenate([finite, p[np.isfinite(p)]]), np.linspace(0, 1, 80), method="lower"))
    alpha = np.array([(np.sum(p > t) + 1) / (len(p) + 1) for t in tried])
    power = np.array([np.mean(q > t) for t in tried])
    # about three standard deviations of each share in a sample of the size to come
    alpha = np.minimum(1.0, alpha + 3 * np.sqrt(alpha * (1 - alpha) / samples))
    power = power - 3 * np.sqrt(power * (1 - power) / samples)
    best = float(tried[np.argmax(np.asarray(claimed.curve(alpha)) - (1 - power))])
    top = np.nextafter(np.inf, 0.0) if np.isposinf(q).any() or not np.isfinite(p).any() else p[np.isfinite(p)].max()
    return [*map(float, spread), best, float(top)]


def event_tests(
    p: Floats, q: Floats, pilot_p: Floats, pilot_q: Floats, claimed: TradeOffCurve, share: float
) -> tuple[list[AuditTest], list[AuditPoint]]:
    """Run the events of both directions.

    Parameters
    ----------
    p, q : ndarray of shape (n,)
        Scores of fresh outputs of the first and the second input.
    pilot_p, pilot_q : ndarray
        Scores of other outputs, from which the thresholds come.
    claimed : TradeOffCurve
        Of the first input against the second.
    share : float
        False-alarm probability of all events together.

    Returns
    -------
    tests : list of AuditTest
        One per event.
    points : list of AuditPoint

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 4000)), rng.normal(1.0, size=(2, 4000))
    >>> [any(t.alarm for t in event_tests(a[0], b[0], a[1], b[1], gaussian(mu), 1e-6)[0]) for mu in (1.0, 0.5)]
    [False, True]
    """
    tests: list[AuditTest] = []
    points: list[AuditPoint] = []
    each = share / (2 * THRESHOLDS)
    level = each / 2
    for swapped in (False, True):
        if swapped:
            p, q, pilot_p, pilot_q, claimed = -q, -p, -pilot_q, -pilot_p, claimed.reversed()
        name = "second input -> first" if swapped else "first input -> second"
        cuts = thresholds(pilot_p, pilot_q, claimed, min(len(p), len(q)))
        counts = [(int(np.sum(p > t)), int(np.sum(q > t))) for t in cuts]
        highest = [upper_limit(false, len(p), level) for false, _ in counts]
        allowed = np.asarray(claimed.curve(np.array(highest))).tolist()
        for number, ((false, found), alpha_high, least) in enumerate(zip(counts, highest, allowed, strict=True)):
            miss_high = 1 - lower_limit(found, len(q), level)
            label = "certain disclosure" if number == THRESHOLDS - 1 else f"event {number + 1}"
            tests.append(AuditTest(f"{name}, {label}", least - miss_high, 0.0, each, not miss_high >= least, MEANING))
            first = (false / len(p), lower_limit(false, len(p), level), alpha_high)
            second = (1 - found / len(q), 1 - upper_limit(found, len(q), level), miss_high)
            a, b = (second, first) if swapped else (first, second)
            points.append(AuditPoint(a[0], b[0], a[1], a[2], b[1], b[2], swapped))
    return tests, points
